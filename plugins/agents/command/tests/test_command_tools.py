"""MCP servers and skills: what an agent finds, what is recorded, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import mleredux
import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux._core.planning.grants import limit_grants
from mleredux._core.plugins import Catalogue, current
from mleredux._core.sandboxes.tools import digests, find_tools
from mleredux.errors import MlereduxError, NotFound, NotGranted
from mleredux.plugin.agent import Grants
from mleredux_agents import CommandRecipe
from mleredux_support.plans import plan_of

TOOLS = Path(__file__).parent / "tools"
CLIENT = """\
import json, os, shutil, subprocess
told = json.load(open(os.environ["MLEREDUX_MCP_FILE"]))["mcpServers"]["rows"]
server = subprocess.Popen([told["command"], *told["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def ask(number, method, **params):
    asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    print(json.dumps(asked), file=server.stdin, flush=True)
    return json.loads(server.stdout.readline())["result"]
sample = os.environ["MLEREDUX_DATA_DIR"] + "/sample_submission.csv"
found = [
    ask(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"}),
    ask(2, "tools/list"),
    ask(3, "tools/call", name="count_rows", arguments={"path": sample})["content"][0]["text"],
    open(os.environ["MLEREDUX_SKILLS_DIR"] + "/row-counts/SKILL.md").read(),
]
json.dump(found, open("logs/found.json", "w"))
shutil.copyfile(sample, os.environ["MLEREDUX_SUBMISSION"])
"""


def run(home: Path, tools: list[str]) -> mleredux.Run:
    """A run of a program that asks an MCP server and reads a skill."""
    (home / "client.py").write_text(CLIENT, encoding="utf-8")
    return mleredux.run(
        *("digits", "command"),
        sandbox="process",
        options={"command": f"python3 {home / 'client.py'}", "libraries": "none"},
        network="none",
        grants={"tools": tools},
        time_limit=60,
        runs_dir=home / "runs",
        data_dir=home / "data",
    )


def test_an_agent_calls_a_server_and_reads_a_skill(tmp_path: Path) -> None:
    shutil.copytree(TOOLS, tmp_path / "tools")
    (tmp_path / "tools" / "row-counts" / "link").symlink_to("/etc/passwd")
    named = [str(tmp_path / "tools" / "mcp.json"), str(tmp_path / "tools" / "row-counts")]
    made = run(tmp_path, named)
    assert str(made.state) == "done", f"{made.message}\n{made.agent_log.read_text(errors='replace')}"
    hello, listed, counted, skill = json.loads((made.output_dir / "logs" / "found.json").read_text())
    assert hello["serverInfo"]["name"] == "rows" and listed["tools"][0]["name"] == "count_rows"
    assert counted == "539 rows" and "must be equal" in skill
    told = (made.path / "task" / "instructions.md").read_text()
    assert "MCP server `rows`: Counts rows." in told and "skills/row-counts/SKILL.md" in told
    assert not (made.path / "task" / "skills" / "row-counts" / "link").exists()
    assert list(made.spec.grants.tools) == named and set(made.use.tools) == {"rows", "row-counts"}
    (tmp_path / "tools" / "row-counts" / "SKILL.md").write_text("Another text.", encoding="utf-8")
    now = digests(find_tools(current(), named))
    assert now["rows"] == made.use.tools["rows"] and now["row-counts"] != made.use.tools["row-counts"]


def test_tools_of_plugins_are_listed_and_found_by_id(tmp_path: Path) -> None:
    plugin = tmp_path / "team_tools.py"
    plugin.write_text(
        "from pathlib import Path\n"
        "from mleredux.plugin import hookimpl\n"
        "from mleredux.plugin.tool import Tool\n"
        "@hookimpl\n"
        "def mleredux_register_tools():\n"
        f"    here = Path({str(TOOLS)!r})\n"
        "    return [Tool(id='rows', title='Counts rows', command=('python3', '{folder}/server.py'),"
        " folder=here / 'server'),\n"
        "            Tool(id='counts', title='Checks rows', folder=here / 'row-counts')]\n",
        encoding="utf-8",
    )
    shown = CliRunner().invoke(root, ["-p", str(plugin), "list", "tools", "--json"])
    rows = {row["id"]: row["kind"] for row in json.loads(shown.output)}
    assert rows == {"rows": "mcp", "counts": "skill"}
    options = {"command": "true"}
    asked = plan_of(
        *(Catalogue(load=[str(plugin)]), "digits", "command"),
        options=options,
        sandbox="process",
        network="none",
        grants=Grants(tools=("rows",)),
        own_machine=True,
    )
    assert asked.grants.tools == ("rows",)


@pytest.mark.parametrize(
    ("agent", "tool", "error", "sentence"),
    [
        ("baseline", str(TOOLS / "row-counts"), MlereduxError, "does not support a skill"),
        ("command recipe", str(TOOLS / "row-counts"), MlereduxError, "does not support a skill"),
        ("command", str(TOOLS / "server"), NotFound, "is not a tool"),
        ("command", "nothing", NotFound, "no tool 'nothing'"),
        ("command", "{tmp}/http.json", NotGranted, "mcp.example.org, which was not granted"),
        ("command", "{tmp}/sse.json", MlereduxError, "the transport 'sse' is not supported"),
        ("command", "{tmp}/broken.json", MlereduxError, "contains no MCP servers"),
        ("command", "{tmp}/neither.json", MlereduxError, "specify the command or the URL"),
    ],
)
def test_what_cannot_be_used_is_refused(
    agent: str,
    tool: str,
    error: type[MlereduxError],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    servers = {
        "http": {"url": "https://mcp.example.org/mcp"},
        "sse": {"url": "https://mcp.example.org/sse", "type": "sse"},
        "neither": {},
    }
    for name, entry in servers.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"mcpServers": {name: entry}}), encoding="utf-8")
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    agent, _, option = agent.partition(" ")
    options = {"command": "true"} if agent == "command" else {}
    if option:
        plain = CommandRecipe("true")
        monkeypatch.setattr("mleredux_agent_command.options.recipe_names", lambda: ["plain"])
        monkeypatch.setattr("mleredux_agent_command.agent.find_recipe", lambda _name: plain)
        options = {"recipe": "plain"}
    how: Any = {"options": options, "sandbox": "process", "network": "none", "own_machine": True}
    grants = Grants(tools=(tool.replace("{tmp}", str(tmp_path)),))
    with pytest.raises(error, match=sentence):
        plan_of(current(), "digits", agent, grants=grants, **how)


def test_on_a_server_only_allowed_ids_are_given() -> None:
    wanted = Grants(tools=("rows", "other", "/etc", "./skill", "x.json"))
    assert limit_grants(wanted, Grants(tools=("*",))).tools == ("rows", "other")
    assert limit_grants(wanted, Grants(tools=("rows", "/etc"))).tools == ("rows",)
    with pytest.raises(NotGranted, match="path on another machine"):
        plan_of(current(), "digits", "command", options={"command": "true"}, grants=Grants(tools=("/etc",)))
