"""`--server URL`: commands over the back end that a plugin opens, wherever the option stands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from mleredux._core.cli.options import note_server, server_of
from mleredux._core.cli.root import root

PLUGIN = """
from mleredux.plugin import Scheme, hookimpl

class Server:
    def __init__(self, url):
        self.url = url

    def listed(self, kind, **filters):
        return [{"id": f"{kind} of {self.url}"}]

@hookimpl
def mleredux_register_schemes():
    return [Scheme(id=name, title="T", open_backend=Server) for name in ("http", "https")]
"""
URL = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def only_this_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEREDUX_BLOCK_PLUGINS", "client")
    monkeypatch.delenv("MLEREDUX_SERVER", raising=False)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_client.py").write_text(PLUGIN)
    monkeypatch.setenv("MLEREDUX_PLUGINS", str(tmp_path / "a_client.py"))


def mleredux(*arguments: str) -> Result:
    return CliRunner().invoke(root, arguments)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--server", URL, "list", "agents", "--json"),
        ("list", "--server", URL, "agents", "--json"),
        ("list", "agents", "--json", f"--server={URL}"),
        ("--server", "http://elsewhere", "list", "agents", "--json", "--server", URL),
    ],
)
def test_the_server_may_be_named_anywhere(arguments: tuple[str, ...]) -> None:
    assert json.loads(mleredux(*arguments).output) == [{"id": f"agents of {URL}"}]


@pytest.mark.usefixtures("client")
def test_the_environment_names_a_server_until_an_empty_option_takes_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEREDUX_SERVER", URL)
    assert f"tasks of {URL}" in mleredux("list").output
    assert json.loads(mleredux("list", "sandboxes", "--server=", "--json").output)


@pytest.mark.usefixtures("client")
def test_commands_that_are_about_this_machine_heed_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEREDUX_SERVER", URL)
    shown = mleredux("plugins").output
    assert "a_client" in shown and "1 sandbox" in shown
    assert "runs on this machine only" in mleredux("plugins", "--server", URL).output
    assert "runs on this machine only" in mleredux("prepare", "digits").output


def test_what_stands_behind_two_dashes_is_no_option_of_ours() -> None:
    ctx = click.Context(root)
    assert note_server(ctx, ["validate", "--", "--server", URL]) == ["validate", "--", "--server", URL]
    assert server_of(ctx) is None


@pytest.mark.parametrize("arguments", [("list", "--server"), ("--server", "--json", "list")])
def test_a_server_without_a_name_is_wrong_usage(arguments: tuple[str, ...]) -> None:
    told = mleredux(*arguments)
    assert told.exit_code == 2 and "needs the URL of a server" in told.output


@pytest.mark.usefixtures("client")
def test_commands_of_this_machine_say_so() -> None:
    told = mleredux("prepare", "digits", "--server", URL)
    assert told.exit_code == 2
    assert "`prepare` runs on this machine only; omit --server (or unset MLEREDUX_SERVER)." in told.output
    told = mleredux("lsit", "--server", URL)
    assert told.exit_code == 2 and "No such command 'lsit'. Did you mean list?" in told.output


@pytest.mark.usefixtures("client")
def test_help_shows_what_works_there() -> None:
    here, there = mleredux("--help").output, mleredux("--server", URL, "--help").output
    assert "--server URL" in here and "\nCommon commands:" in here and "prepare" in here
    assert "\nCommon commands on a server:" in there and "  list " in there and "prepare" not in there
    here, there = mleredux("run", "--help").output, mleredux("--server", URL, "run", "--help").output
    assert "--runs-dir" in here and "--detach" not in here
    assert "--detach" in there and "--runs-dir" not in there


@pytest.mark.usefixtures("client")
def test_options_of_the_other_place_are_refused_by_name() -> None:
    told = mleredux("list", "--data-dir", "x", "--server", URL)
    assert told.exit_code == 2 and "--data-dir cannot be combined with --server" in told.output
    told = mleredux("run", "digits", "--agent", "dummy", "--detach")
    assert told.exit_code == 2 and "--detach needs a server" in told.output


@pytest.mark.parametrize("command", ["run", "nonsense"])
def test_without_the_client_it_is_said_what_to_install(command: str) -> None:
    told = mleredux(command, "--server", URL)
    assert told.exit_code == 2 and "pip install mleredux-client" in told.output
    assert "pip install mleredux-client" in " ".join(mleredux("--server", URL, "--help").output.split())


def test_help_and_lists_import_nothing_of_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every plugin of this environment: neither the client nor anything it needs."""
    monkeypatch.delenv("MLEREDUX_BLOCK_PLUGINS")
    program = (
        "import sys; from mleredux._core.cli.root import root; root.main(['--help'], standalone_mode=False);"
        f"root.main(['--server', {URL!r}, '--help'], standalone_mode=False);"
        "root.main(['list', 'agents', '--json'], standalone_mode=False);"
        "print([name for name in sys.modules if name.partition('.')[0] in"
        " ('httpx', 'mleredux_client', 'fastapi', 'pydantic', 'rich', 'ssl')], file=sys.stderr)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600)
    assert told.stderr.splitlines()[-1] == "[]"
