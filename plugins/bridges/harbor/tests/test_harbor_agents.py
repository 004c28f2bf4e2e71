"""Agents of Harbor in images of ours, by their own recipes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import mleredux
import pytest
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.store import Run
from mleredux.errors import MlereduxError
from mleredux_bridge_harbor.installed_agent import configure
from mleredux_rollout import read_rollout
from mleredux_scripted_llm import ScriptedLlm

HERE = Path(__file__).parent
TOOLS = HERE.parents[2] / "agents" / "command" / "tests" / "tools"
KEY = "sk-planted-91c04f7a22"


@pytest.fixture(scope="module")
def run(docker_base_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run of Mistral Vibe, whose recipe needs nothing but the registry of Python's packages."""
    home = tmp_path_factory.mktemp("harbor")
    with ScriptedLlm(HERE / "scenarios" / "digits.yaml", key=KEY) as llm, pytest.MonkeyPatch.context() as patch:
        for name, value in llm.environment(KEY).items():
            patch.setenv(name, value)
        patch.setenv("XDG_CONFIG_HOME", str(home))
        set_current(None)
        made = mleredux.run(
            "digits", "harbor-agent", sandbox="docker",
            options={
                "name": "vibe",
                "model": "openai/gpt-4.1",
                "libraries": "none",
                "arguments": {"version": "2.25.5", "backend": "generic"},
            },
            grants={"tools": [str(TOOLS / "mcp.json"), str(TOOLS / "row-counts")]},
            time_limit=300, limits={"cpus": 2, "memory_mb": 2048}, runs_dir=home / "runs", data_dir=home / "data",
        )  # fmt: skip
        assert not llm.unmatched, llm.unmatched
        yield made
    set_current(None)


@pytest.mark.docker
@pytest.mark.slow
def test_an_agent_of_harbor_is_installed_asks_and_is_graded(run: Run) -> None:
    assert str(run.state) == "done", f"{run.message}\n{run.agent_log.read_text(errors='replace')}"
    assert run.report is not None and run.report.valid_submission
    ledger = run.report.ledger
    assert ledger is not None and ledger.llm is not None and ledger.llm.calls == 2
    rollout = read_rollout(run.path / "rollout.json")
    assert [call.arguments["command"] for step in rollout.steps for call in step.tool_calls or () if call.arguments]
    assert (run.output_dir / "logs" / "trajectory.json").is_file(), "what Harbor makes of the agent's log"
    told = tomllib.loads((run.output_dir / "logs" / "vibe-home" / "config.toml").read_text())
    assert [server["name"] for server in told["mcp_servers"]] == ["rows"] and told["skill_paths"]
    assert not [path for path in run.path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def test_options_are_checked_before_anything_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for options, message in [
        ({}, "No Harbor agent is set"),
        ({"name": "a b"}, "neither the name of an agent nor MODULE:CLASS"),
        ({"name": "codx"}, "has no agent 'codx' that is installed in its environment; did you mean codex?"),
        ({"name": "terminus-2"}, "has no agent 'terminus-2'"),
        ({"name": "vibe", "install": "git+https://example.org/x"}, "has no version"),
        ({"name": "vibe", "arguments": "[]"}, "not a JSON object"),
        ({"name": "vibe", "arguments": "{"}, "not a JSON object"),
    ]:
        with pytest.raises(MlereduxError, match=message):
            configure(options)
    assert not list(tmp_path.rglob("Dockerfile"))
    made = [configure({"name": "own:Agent", "install": "own[x]==1.0", "model": model}) for model in ("a", "b")]
    assert made[0].build == made[1].build, "another model needs no other image"
    context = made[0].build.context
    assert context is not None and "own[x]==1.0" in (context / "harbor.txt").read_text().splitlines()
