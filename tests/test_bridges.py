"""One score: the same submission has the same result through every bridge, validity and reasons included."""

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
from mleredux_agents import open_session, rule_of
from mleredux_bridge_gymnasium.environment import SHELL, SUBMIT
from mleredux_bridge_harbor.directory import write_task
from mleredux_bridge_inspect.registry import make
from mleredux_bridge_mcp.server import make_server
from mleredux_rollout import export
from mleredux_scripted_llm import ScriptedLlm
from mleredux_testing.pytest_plugin import validator

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
    home = tmp_path_factory.mktemp("bridges")
    return {"sandbox": "process", "runs_dir": home / "runs", "data_dir": home / "data"}


def by_gymnasium(command: str, places: Places) -> Run:
    name = "mleredux_bridge_gymnasium.environment:mleredux/Task-v0"
    env: Any = gymnasium.make(name, task="wine", reward="score", invalid=-7.0, **places)
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
    assert scores["standing"].as_float() == rule_of("standing").of(run)
    return run


def by_harbor(file: Path, home: Path, places: Places) -> tuple[dict[str, float], str | None]:
    """The reward and message of the verifier of an exported task: it finds our packages only in its own folder."""
    write_task("wine", home / "wine", rule_of("score", -7.0), data_dir=places["data_dir"])
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
            if (
                found := re.search(r"http://127\.0\.0\.1:\d+(?= \(|$)", said, re.MULTILINE)
            ) or server.poll() is not None:
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
    programs = validator("openenv") / "bin"
    words = [word for name, value in places.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    server = (programs / "mleredux", "openenv", "wine", "--reward", "score", "--invalid", "-7", *words)
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


@pytest.fixture(scope="module")
def submissions(places: Places, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """A valid submission, and one without its last row."""
    prepared = mleredux.prepare("wine", data_dir=places["data_dir"])
    header, *rows = (prepared.public / "sample_submission.csv").read_text().splitlines()
    guesses = ("0.8,0.15,0.05", "0.1,0.7,0.2", "0.25,0.25,0.5")
    cells = [f"{row.partition(',')[0]},{guesses[place % 3]}" for place, row in enumerate(rows)]
    folder = tmp_path_factory.mktemp("submissions")
    made = {}
    for valid, kept in ((True, cells), (False, cells[:-1])):
        made[valid] = folder / str(valid) / "mine.csv"
        made[valid].parent.mkdir()
        made[valid].write_text("\n".join([header, *kept]) + "\n")
    return made


def in_verifiers(program: str, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What a program of verifiers did, in its own environment; it writes into the working directory."""
    programs = validator("verifiers") / "bin"
    return subprocess.run(
        [programs / program, "mleredux-bridge-verifiers", "--no-rich", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PRIME_API_KEY": "none", "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        cwd=home,
    )


@pytest.fixture(scope="module")
def rollouts(
    places: Places, submissions: dict[bool, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """The traces of `vf-eval`, by what the scripted model submits: the seed decides."""
    command = (
        f"case $MLEREDUX_SEED in 0) cp '{submissions[True]}' submission.csv;; "
        f"1) cp '{submissions[False]}' submission.csv;; esac"
    )
    tools = [{"name": "run_command", "arguments": {"command": command}}]
    first = {"when": {"tools": ["run_command"], "last": "say that you are done"}, "reply": {"tools": tools}}
    out = tmp_path_factory.mktemp("vf-eval")
    words = ["-m", "scripted", "--no-push", "--env.agent.harness.id", "null"]
    words += ["--env.agent.runtime.type", "subprocess", "--env.taskset.tasks", '["wine"]', "--env.taskset.seeds", "3"]
    for name, value in {**places, "reward": "score", "invalid": -7}.items():
        words += [f"--env.taskset.task.{name}", str(value)]
    with ScriptedLlm({"rules": [first, {"reply": {"text": "Done."}}]}) as llm:
        ended = in_verifiers("vf-eval", out.parent, *words, "--client.base-url", f"{llm.url}/v1", "-o", str(out))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (file,) = out.glob("*/traces.jsonl")
    episodes = [json.loads(line) for line in file.read_text().splitlines()]
    assert not any(episode["errors"] for episode in episodes), ended.stdout + ended.stderr
    traces = [trace for episode in episodes for trace in episode["traces"]]
    named = ("valid", "invalid", "none")
    return {named[trace["task"]["data"]["seed"]]: trace for trace in traces}


def run_of(trace: dict[str, Any], places: Places) -> Run:
    """The run of a rollout in verifiers, whose reward and metric are those of its report."""
    run = Run(places["runs_dir"] / trace["info"]["run"])
    assert run.report is not None
    expected = -7.0 if run.report.score is None else -run.report.score
    assert trace["rewards"]["reward"]["score"] == pytest.approx(expected, abs=1e-12)
    assert trace["metrics"]["valid"] == float(run.report.valid_submission)
    return run


@pytest.mark.parametrize("valid", [True, False], ids=["valid", "invalid"])
def test_a_submission_has_the_same_result_through_every_bridge(
    places: Places,
    service: dict[str, str],
    submissions: dict[bool, Path],
    rollouts: dict[str, dict[str, Any]],
    tmp_path: Path,
    valid: bool,
) -> None:
    from inspect_ai.log import read_eval_log

    file = submissions[valid]
    expected = mleredux.grade(file, "wine", data_dir=places["data_dir"])
    assert expected.valid_submission == valid
    words = (PROGRAMS / "mleredux", "grade", file, "wine", "--json")
    for variables in ({"MLEREDUX_DATA_ROOT": str(places["data_dir"])}, service):  # here, and on a server
        graded = printed(*words, code=0 if valid else 3, **variables)
        told = (graded["valid_submission"], graded["score"], graded["percentile"])
        assert told == (valid, expected.score, expected.percentile)
        assert (graded["message"] or "").replace(str(file), "F") == (expected.message or "").replace(str(file), "F")
    bridges: tuple[Callable[[str, Places], Run], ...] = (by_gymnasium, by_mcp, by_inspect)
    runs = [bridge(f"cp '{file}' submission.csv", places) for bridge in bridges]
    lent = run_of(rollouts["valid" if valid else "invalid"], places)
    for run in (*runs, lent):
        report = run.report
        assert report is not None and report.valid_submission == valid
        assert report.score == pytest.approx(expected.score, abs=1e-12) if valid else report.score is None
        assert (report.message or "").replace("mine.csv", "submission.csv") == (expected.message or "").replace(
            str(file), "submission.csv"
        )
        if run is lent:  # its environment has no plugin that makes rollouts
            continue
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


def test_models_in_verifiers_see_no_answers_and_none_that_submits_nothing_gets_a_score(
    places: Places, rollouts: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    refused = run_of(rollouts["none"], places).report
    expected = mleredux.grade(tmp_path / "submission.csv", "wine", data_dir=places["data_dir"])
    assert refused is not None and not refused.submission_exists and refused.score is None
    assert (refused.message or "") == (expected.message or "").replace(f"{tmp_path}/", "")
    run = run_of(rollouts["valid"], places)
    assert (run.spec.agent, str(run.state)) == ("verifiers", "done") and run.report is not None
    assert run.report.verdict.status == "score given" and "revealed as a reward" in (run.report.verdict.why or "")
    answers = places["data_dir"] / "wine" / "prepared" / "private" / "answers.csv"
    shown = json.dumps(rollouts["valid"]["nodes"])
    assert str(run.report.score) not in shown
    assert not any(row in shown for row in answers.read_text().splitlines()[1:6])


def test_every_bridge_refuses_an_unknown_task_in_the_same_words(places: Places, service: dict[str, str]) -> None:
    told = "There is no task 'wien'."
    name = "mleredux_bridge_gymnasium.environment:mleredux/Task-v0"
    bridges: tuple[Callable[[], object], ...] = (
        lambda: gymnasium.make(name, task="wien", **places),
        lambda: open_session("wien", "mcp", **places),
        lambda: make("wien"),
        lambda: write_task("wien", places["runs_dir"].parent / "wien", data_dir=places["data_dir"]),
    )
    for bridge in bridges:
        with pytest.raises(mleredux.MlereduxError, match=re.escape(told)):
            bridge()
    openenv = validator("openenv") / "bin" / "mleredux"
    for words, variables in (
        ((PROGRAMS / "mleredux", "grade", "x.csv", "wien"), {}),
        ((PROGRAMS / "mleredux", "grade", "x.csv", "wien"), service),
        ((PROGRAMS / "mleredux", "mcp", "wien"), {}),
        ((openenv, "openenv", "wien"), {}),
    ):
        ended = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **variables})
        assert ended.returncode != 0 and told in ended.stderr
    ended = in_verifiers("vf-validate", places["runs_dir"].parent, "--taskset.tasks", '["wien"]')
    assert ended.returncode != 0 and told in ended.stdout + ended.stderr
