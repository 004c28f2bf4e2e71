"""One score: the same submission has the same result through every door, validity and reasons included."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import mleredux
import pytest
from inspect_ai import eval as evaluate
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import sandbox
from mcp import Client
from mleredux import Run
from mleredux.plugin.command import current
from mleredux.plugin.export import export
from mleredux.plugin.session import open_session
from mleredux_bridge_gymnasium.environment import SHELL, SUBMIT
from mleredux_bridge_harbor.directory import write_task
from mleredux_bridge_inspect.registry import make
from mleredux_bridge_mcp.server import make_server
from mleredux_testing.pytest_plugin import skip_or_fail

OPENENV_CLIENT = """
import json, sys
from openenv.core.generic_client import GenericEnvClient

with GenericEnvClient(base_url=sys.argv[1], message_timeout_s=300).sync() as client:
    client.reset(seed=0)
    client.step({"kind": "shell", "text": sys.argv[2]})
    ended = client.step({"kind": "submit"})
print(json.dumps({"reward": ended.reward, **ended.observation}))
"""
PROGRAMS = Path(sys.executable).parent
Places = dict[str, Any]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    home = tmp_path_factory.mktemp("doors")
    return {"sandbox": "process", "runs_dir": home / "runs", "data_dir": home / "data"}


def by_gymnasium(command: str, places: Places) -> Run:
    name = "mleredux_bridge_gymnasium.environment:mleredux/Task-v0"
    env: Any = gymnasium.make(name, task="wine", invalid=-7.0, **places)
    env.reset(seed=0)
    env.step({"kind": SHELL, "text": command})
    _, reward, terminated, _, info = env.step({"kind": SUBMIT, "text": ""})
    run: Run = env.unwrapped.run
    env.close()
    assert terminated and run.report is not None
    assert reward == pytest.approx(-7.0 if run.report.score is None else -run.report.score, abs=1e-12)
    assert (info["valid"], info["message"]) == (run.report.valid_submission, run.report.message)
    return run


def by_mcp(command: str, places: Places) -> Run:
    async def work(server: Any) -> None:
        async with Client(server) as client:
            await client.call_tool("run_command", {"command": command})
            await client.call_tool("submit", {})

    with open_session("wine", "mcp", **places) as session:
        asyncio.run(work(make_server(session)))
        return session.run


def by_inspect(command: str, places: Places) -> Run:
    @solver
    def copying() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            await sandbox().exec(["sh", "-c", command])
            return state

        return solve

    task = make("wine", **{name: str(value) for name, value in places.items()})
    logs = str(places["runs_dir"].parent / "logs")
    (log,) = evaluate(task, solver=copying(), model="mockllm/model", display="none", log_dir=logs)
    (sample,) = log.samples or ()
    scores = sample.scores or {}
    run = Run(places["runs_dir"] / (scores["score"].metadata or {})["run"])
    assert run.report is not None and scores["valid"].value == run.report.valid_submission
    if run.report.score is not None:
        assert scores["score"].as_float() == pytest.approx(run.report.score, abs=1e-12)
    assert scores["score"].explanation == run.report.message
    return run


def by_harbor(file: Path, home: Path, places: Places) -> tuple[dict[str, float], str | None]:
    """The reward and message of the verifier of an exported task: it finds our packages only in its own folder."""
    write_task("wine", home / "wine", invalid=-7.0, data_dir=places["data_dir"])
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "SUBMISSION": str(file), "LOGS": str(home / "logs")}
    subprocess.run([home / "wine" / "tests" / "test.sh"], check=True, env=environment, capture_output=True)
    reward = json.loads((home / "logs" / "reward.json").read_text())
    return reward, json.loads((home / "logs" / "report.json").read_text())["message"]


@contextmanager
def serving(log: Path, *command: str | Path) -> Iterator[tuple[str, str]]:
    """A server that a command starts: its URL, and all that it said until it listened."""
    with log.open("wb") as file:
        server = subprocess.Popen([*command, "--port", "0"], stdout=file, stderr=subprocess.STDOUT)
    try:
        for _ in range(1200):
            said = log.read_text()
            if (found := re.search(r"http://127\.0\.0\.1:\d+$", said, re.MULTILINE)) or server.poll() is not None:
                break
            time.sleep(0.1)
        assert found is not None, said
        yield found[0], said
    finally:
        server.terminate()
        server.wait()


def printed(*command: str | Path, code: int = 0, **variables: str) -> dict[str, Any]:
    """The JSON that a program prints."""
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables})
    assert ended.returncode == code, ended.stdout + ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def by_openenv(command: str, home: Path, places: Places) -> dict[str, Any]:
    """The last observation and reward of a client in OpenEnv's own environment."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    programs = cache / "mleredux-openenv" / "bin"
    if not programs.is_dir():
        skip_or_fail("validators", f"there is no OpenEnv in {programs.parent} (`.ci/validators` gets it)")
    words = [word for name, value in places.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    server = (programs / "mleredux", "openenv", "wine", "--invalid", "-7", *words)
    with serving(home / "openenv.log", *server) as (url, _):
        return printed(programs / "python", "-c", OPENENV_CLIENT, url, command)


@pytest.fixture(scope="module")
def service(places: Places, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables by which commands work on a server."""
    folder = tmp_path_factory.mktemp("service")
    words = ("--runs-dir", str(folder / "runs"), "--data-dir", str(places["data_dir"]))
    with serving(folder / "log", PROGRAMS / "mleredux", "serve", *words) as (url, said):
        token = re.search(r"^Token: (\S+)", said, re.MULTILINE)
        assert token is not None
        yield {"MLEREDUX_SERVER": url, "MLEREDUX_TOKEN": token[1]}


@pytest.mark.parametrize("valid", [True, False], ids=["valid", "invalid"])
def test_a_submission_has_the_same_result_through_every_door(
    places: Places, service: dict[str, str], tmp_path: Path, valid: bool
) -> None:
    from inspect_ai.log import read_eval_log

    prepared = mleredux.prepare("wine", data_dir=places["data_dir"])
    header, *rows = (prepared.public / "sample_submission.csv").read_text().splitlines()
    file = tmp_path / "mine.csv"
    guesses = ("0.8,0.15,0.05", "0.1,0.7,0.2", "0.25,0.25,0.5")
    cells = [f"{row.partition(',')[0]},{guesses[place % 3]}" for place, row in enumerate(rows)]
    file.write_text("\n".join([header, *(cells if valid else cells[:-1])]) + "\n")
    expected = mleredux.grade(file, "wine", data_dir=places["data_dir"])
    assert expected.valid_submission == valid
    words = (PROGRAMS / "mleredux", "grade", file, "wine", "--json")
    for variables in ({"MLEREDUX_DATA": str(places["data_dir"])}, service):  # the command line, here and on a server
        graded = printed(*words, code=int(not valid), **variables)
        told = (graded["valid_submission"], graded["score"], graded["percentile"])
        assert told == (valid, expected.score, expected.percentile)
        assert (graded["message"] or "").replace(str(file), "F") == (expected.message or "").replace(str(file), "F")
    doors: tuple[Callable[[str, Places], Run], ...] = (by_gymnasium, by_mcp, by_inspect)
    for door in doors:
        run = door(f"cp '{file}' submission.csv", places)
        report = run.report
        assert report is not None and report.valid_submission == valid
        assert report.score == pytest.approx(expected.score, abs=1e-12) if valid else report.score is None
        assert (report.message or "").replace("mine.csv", "submission.csv") == (expected.message or "").replace(
            str(file), "submission.csv"
        )
        (log,), _ = export([run], current().get("formats", "inspect"), tmp_path / f"{run.id}.eval", current())
        samples = read_eval_log(str(log)).samples or []
        (shown,) = (samples[0].scores or {}).values()
        assert shown.value == pytest.approx(expected.score if valid else 0, abs=1e-12)
    reward, message = by_harbor(file, tmp_path, places)
    assert reward["valid"] == int(valid) and message == expected.message
    assert expected.score is None or expected.is_lower_better
    assert reward["reward"] == pytest.approx(-7.0 if expected.score is None else -expected.score, abs=1e-12)
    ended = by_openenv(f"cp '{file}' submission.csv", tmp_path, places)
    assert ended["valid"] == valid and ended["reward"] == pytest.approx(reward["reward"], abs=1e-12)
    assert (ended["message"] or "") == (expected.message or "").replace(str(file), "submission.csv")
