"""The taskset in verifiers' own environment; `tests/test_bridges.py` has rollouts, with their scores."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from mleredux import Run
from mleredux.plugin.artifact import RunStore
from mleredux_scripted_llm import ScriptedLlm
from mleredux_testing.launches import wait_for
from mleredux_testing.pytest_plugin import validator

KINDS = (
    "wine", "synthetic-micro-public-3", "wine+planted-public-3", "leakage@synthetic-micro-public-3",
    "eda+planted-public-3@wine", "breast-cancer-model", "wine-tasting",
)  # fmt: skip
"""Tasks of each kind."""


def validated(home: Path, tasks: Sequence[str], **options: str) -> tuple[dict[str, dict[str, Any]], str]:
    """The rows of what `vf-validate` found, by task, and all that it said."""
    programs = validator("verifiers") / "bin"
    task = {"sandbox": "process", "runs_dir": str(home / "runs"), "data_dir": str(home / "data"), **options}
    words = ["-o", str(home / "out"), "--runtime.type", "subprocess", "--taskset.tasks", json.dumps(tasks)]
    words += [word for name, value in task.items() for word in (f"--taskset.task.{name}", value)]
    ended = subprocess.run(
        [programs / "vf-validate", "mleredux-bridge-verifiers", "--no-rich", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (file,) = (home / "out").glob("*/results.jsonl")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(rows) == len(tasks), rows
    return {row["name"]: row for row in rows}, ended.stdout + ended.stderr


def test_its_own_validator_accepts_the_taskset(tmp_path: Path) -> None:
    rows, told = validated(tmp_path, ["wine"], reward="percentile", invalid="-7")
    row = rows["wine"]
    assert row["valid"] is True, told
    assert row["gold"]["valid"] is True  # the solution has the best score
    assert (row["noop"]["valid"], row["noop"]["reward"]) == (True, -7.0)  # nothing submitted: the reward of the options
    runs = [Run(path) for path in (tmp_path / "runs").glob("2*")]
    assert [run.spec.agent for run in runs] == ["verifiers"] * 2  # one for each check
    assert {str(run.state): run.report and run.report.valid_submission for run in runs} == {
        "cancelled": None,  # the solution is graded apart
        "done": False,  # nothing was submitted, and that was rewarded
    }


def test_the_solution_of_every_kind_of_task_has_the_best_reward_and_nothing_none(tmp_path: Path) -> None:
    rows, told = validated(tmp_path, KINDS)
    assert rows.keys() == set(KINDS)
    for task, row in rows.items():
        assert row["valid"] is row["gold"]["valid"] is row["noop"]["valid"] is True, (task, row, told)
        assert row["noop"]["reward"] == 0, (task, row)


def family(number: int) -> list[tuple[str, psutil.Process]]:
    """The command lines of a process and those below it."""
    lines = []
    for process in [psutil.Process(number), *psutil.Process(number).children(True)]:
        with suppress(psutil.Error):  # it ended in the meantime
            lines.append((" ".join(process.cmdline()), process))
    return lines


STUBBORN = "setsid sh -c 'trap \"\" TERM INT HUP; sleep 600' & kill -STOP $PPID; sleep 600"


@pytest.mark.parametrize(
    ("killed", "how", "command"),
    [
        ("vf-eval", signal.SIGKILL, "sleep 600"),
        ("vf-eval", signal.SIGKILL, STUBBORN),
        ("vf-eval", signal.SIGTERM, STUBBORN),
        ("mleredux_bridge_verifiers.toolset", signal.SIGKILL, "setsid sleep 600 & sleep 600"),
    ],
    ids=["evaluation", "evaluation whose agent ignores signals", "ended evaluation", "tools"],
)
def test_a_rollout_whose_process_is_killed_loses_and_leaves_nothing(
    tmp_path: Path, killed: str, how: signal.Signals, command: str
) -> None:
    """No process, and after the next run no file, mount or socket; what the agent wrote and the events are kept."""
    programs, temporary, store = validator("verifiers") / "bin", tmp_path / "tmp", RunStore(tmp_path / "runs")
    temporary.mkdir()
    tools = [{"name": "run_command", "arguments": {"command": f"echo kept > kept.txt; {command}"}}]
    first = {"when": {"tools": ["run_command"], "last": "say that you are done"}, "reply": {"tools": tools}}
    places = {
        "sandbox": "process",
        "runs_dir": str(store.path),
        "data_dir": str(tmp_path / "data"),
        "time_limit": "120",
    }
    words = ["-m", "scripted", "--no-push", "--env.agent.harness.id", "null", "-o", str(tmp_path / "out")]
    words += ["--env.agent.runtime.type", "subprocess", "--env.taskset.tasks", '["wine"]']
    words += [word for name, value in places.items() for word in (f"--env.taskset.task.{name}", value)]
    environment = {**os.environ, "PRIME_API_KEY": "none", "TMPDIR": str(temporary)}
    environment["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    with (
        ScriptedLlm({"rules": [first, {"reply": {"text": "Done."}}]}) as llm,
        subprocess.Popen(
            [
                programs / "vf-eval",
                "mleredux-bridge-verifiers",
                "--no-rich",
                *words,
                "--client.base-url",
                f"{llm.url}/v1",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=tmp_path,
        ) as program,
    ):
        try:
            assert wait_for(lambda: "sleep 600" in [line for line, _ in family(program.pid)], 300)
            below = family(program.pid)
            next(process for line, process in below if killed in line).send_signal(how)
            program.wait(240)
        finally:
            program.kill()
    _, left = psutil.wait_procs([process for _, process in below], 60)
    assert not left
    (number,) = store.ids()
    run = Run(store.path / number)
    assert (run.output_dir / "kept.txt").read_text() == "kept\n"
    events = [event.seq for event in run.events()]
    assert events == list(range(events[0], events[0] + len(events)))
    following = ["run", "wine", "--agent", "dummy", "--sandbox", "process", "--runs-dir", str(store.path)]
    following += ["--data-dir", str(tmp_path / "data")]
    subprocess.run(
        [sys.executable, "-m", "mleredux", *following],
        check=True,
        capture_output=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    status = {row["id"]: row["status"] for row in store.rows()}[number]
    assert status == ("interrupted" if killed == "vf-eval" and how is signal.SIGKILL else "cancelled")
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
    assert not [path for path in temporary.iterdir() if not path.name.startswith("uv-")]  # a lock that uv keeps
    assert not [path for path in (*Path("/dev/shm").iterdir(), *Path("/tmp").iterdir()) if number in path.name]
