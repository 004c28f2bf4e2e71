"""One score: the same submission has the same result through every door, validity and reasons included."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
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


@pytest.mark.parametrize("valid", [True, False], ids=["valid", "invalid"])
def test_a_submission_has_the_same_result_through_every_door(places: Places, tmp_path: Path, valid: bool) -> None:
    from inspect_ai.log import read_eval_log

    prepared = mleredux.prepare("wine", data_dir=places["data_dir"])
    header, *rows = (prepared.public / "sample_submission.csv").read_text().splitlines()
    file = tmp_path / "mine.csv"
    guesses = ("0.8,0.15,0.05", "0.1,0.7,0.2", "0.25,0.25,0.5")
    cells = [f"{row.partition(',')[0]},{guesses[place % 3]}" for place, row in enumerate(rows)]
    file.write_text("\n".join([header, *(cells if valid else cells[:-1])]) + "\n")
    expected = mleredux.grade(file, "wine", data_dir=places["data_dir"])
    assert expected.valid_submission == valid
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
