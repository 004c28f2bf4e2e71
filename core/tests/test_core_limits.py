"""Limits of an agent in the process sandbox: what ends it, in which order, and what the report says of it."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from mleredux._core.store import Run
from mleredux.errors import MlereduxError
from mleredux.models import Cause, State
from mleredux_support.plans import plan_of


def types(run: Run) -> list[str]:
    return [
        event.data.get("signal") or event.data.get("limit") or event.type
        for event in run.events()
        if event.type in ("notice", "limit", "signal")
    ]


def test_the_time_limit_is_told_before_it_is_enforced(toy: Any) -> None:
    run = toy.run("stubborn", limits={"time_limit": 3, "notice": 60, "grace": 0.5})
    assert types(run) == ["notice", "time", "SIGTERM", "SIGKILL"]
    times = {event.type: event.time.timestamp() for event in run.events()}
    (started,) = (event.data["started_at"] for event in run.events() if event.type == "agent")
    assert times["notice"] - started > 2.1, "at most a tenth of the time limit before it"
    assert times["notice"] < times["limit"] and 2.4 < times["limit"] - started < 30
    assert (run.state, run.cause) == (State.TIMED_OUT, Cause.AGENT_TIMED_OUT)
    assert run.report.limit == "time"
    assert run.report.valid_submission, "what lies in the output folder counts"
    assert run.outcome.signal == 9
    assert (run.path / "task" / "notice.txt").exists()


def test_an_agent_that_heeds_sigterm_is_not_killed(toy: Any) -> None:
    run = toy.run("polite", limits={"time_limit": 5, "grace": 60})
    assert types(run) == ["notice", "time", "SIGTERM"]
    assert run.outcome.exit_code == 0 and run.cause is Cause.AGENT_TIMED_OUT
    assert (run.output_dir / "logs" / "bye").exists()


@pytest.mark.parametrize("jump", [-86400, 86400], ids=["a-day-back", "a-day-on"])
@pytest.mark.attack
def test_setting_the_clock_neither_ends_an_agent_nor_gives_it_more_time(
    toy: Any, monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    run, real, begun = toy.new("sleeper", limits={"time_limit": 2, "grace": 0}), time.time, time.monotonic()
    run.observers.append(
        lambda _run, event: monkeypatch.setattr(time, "time", lambda: real() + jump) if event.type == "agent" else None
    )
    toy.pipeline().execute([run])
    assert run.cause is Cause.AGENT_TIMED_OUT
    assert 1 < run.outcome.seconds < 60
    assert time.monotonic() - begun < 90


def test_a_tiny_time_limit_is_one_too(toy: Any) -> None:
    run = toy.run("sleeper", limits={"time_limit": 0.01, "grace": 0})
    assert run.cause is Cause.AGENT_TIMED_OUT


@pytest.mark.parametrize(
    ("agent", "cause", "limit"),
    [
        ("hog", Cause.OUT_OF_MEMORY, "memory"),
        ("takes-apart", Cause.OUT_OF_MEMORY, "memory"),
        ("fill", Cause.OUT_OF_DISK, "disk"),
        ("fill-slowly", Cause.OUT_OF_DISK, "disk"),
        ("fill-and-give-up", Cause.OUT_OF_DISK, "disk"),
        ("chatter", Cause.OUT_OF_DISK, "disk"),
        ("forks", Cause.AGENT_CRASHED, "processes"),
    ],
)
def test_what_is_used_up_is_named(toy: Any, agent: str, cause: Cause, limit: str) -> None:
    run = toy.run(agent)
    assert (run.state, run.cause) == (State.FAILED, cause)
    assert run.report.limit == limit and run.outcome.limit == limit
    assert limit in types(run)
    assert "limit" in run.message and "\n" not in run.message
    assert not run.report.valid_submission and run.report.message == "submission.csv does not exist."
    assert run.outcome.seconds < run.spec.limits.time_limit / 2, "long before its time was up"


def test_memory_that_forks_share_counts_once(toy: Any) -> None:
    run = toy.run("shares-memory")
    assert (run.state, run.report.valid_submission) == (State.DONE, True)
    assert 300 < run.outcome.max_memory_mb < 512


def test_an_agent_that_crashes_counts_and_says_how(toy: Any) -> None:
    run = toy.run("crash")
    assert (run.state, run.cause) == (State.FAILED, Cause.AGENT_CRASHED)
    assert run.message.startswith("The agent's command ended with exit code 7")
    assert run.report.limit is None


@pytest.mark.attack
def test_what_the_agent_left_running_ends_with_it(toy: Any) -> None:
    run = toy.run("daemon")
    assert run.state is State.DONE
    assert not [one for one in psutil.process_iter() if _command(one) == ["sleep", "611"]]


@pytest.mark.attack
def test_an_agent_that_kills_its_launcher_takes_nothing_along(toy: Any) -> None:
    run = toy.run("parricide")
    assert (run.state, run.cause) == (State.FAILED, Cause.AGENT_CRASHED)
    assert not toy.processes(run)


@pytest.mark.attack
@pytest.mark.parametrize("agent", ["hydra", "hydra-that-stops-its-launcher", "hydra-of-many-groups"])
def test_processes_that_fork_faster_than_they_are_killed_are_stopped(agent: str, toy: Any) -> None:
    began = time.monotonic()
    run = toy.run(agent, limits={"time_limit": 2, "grace": 0, "processes": 2000})
    assert run.cause is Cause.AGENT_TIMED_OUT
    assert not toy.processes(run)
    assert time.monotonic() - began < 200, "it would end by itself then"


@pytest.mark.attack
def test_an_agent_that_closes_its_output_and_ends_is_done(toy: Any) -> None:
    run = toy.run("silent")
    assert run.state is State.DONE and run.report.valid_submission
    assert run.agent_log.read_bytes() == b""


@pytest.mark.attack
def test_bytes_that_are_not_utf8_stay_in_the_log(toy: Any) -> None:
    run = toy.run("chatter")
    assert b"\xff\x00 noise" in run.agent_log.read_bytes()


@pytest.mark.attack
def test_a_tree_deeper_than_any_recursion_is_no_matter(toy: Any) -> None:
    run = toy.run("deep")
    assert run.state is State.DONE, run.message
    assert not (run.path / ".scratch").exists()
    assert any("nested more than" in item["reason"] for item in run.manifest.left_out)
    toy.store.delete(run)


@pytest.mark.attack
def test_an_agent_that_removes_its_task_breaks_nothing_but_itself(toy: Any) -> None:
    run = toy.run("removes-task", limits={"time_limit": 2, "grace": 0})
    assert (run.state, run.cause) == (State.TIMED_OUT, Cause.AGENT_TIMED_OUT)


@pytest.mark.attack
def test_the_environment_is_ours_alone(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST_TOKEN", "not for agents")
    run = toy.new("sleeper", limits={"time_limit": 3, "grace": 0})
    seen: dict[str, str] = {}

    def look(changed: Run, event: Any) -> None:
        if event.type == "agent":
            until = time.monotonic() + 60
            while "MLEREDUX_SEED" not in seen and time.monotonic() < until:
                for process in toy.processes(changed):
                    with contextlib.suppress(psutil.Error):
                        seen.update(process.environ())
                        seen["home"] = os.path.realpath(seen["HOME"])

    run.observers.append(look)
    toy.pipeline().execute([run])
    assert seen["MLEREDUX_SEED"] == "0" and Path(seen["home"]).name == ".scratch"
    assert not {"HOST_TOKEN", "PYTHONPATH", "TOY_GATE"} & set(seen)


def test_usage_is_in_the_outcome(toy: Any) -> None:
    run = toy.run("sleeper", limits={"time_limit": 1.5, "grace": 0})
    assert 1.4 < run.outcome.seconds < 30
    assert run.outcome.max_memory_mb and run.outcome.cpu_seconds is not None


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.mark.parametrize(("name", "value"), [("memory_mb", 1), ("disk_mb", 0), ("cpus", -1), ("time_limit", 0)])
def test_a_limit_out_of_range_is_told_in_a_sentence(toy: Any, name: str, value: float) -> None:
    with pytest.raises(MlereduxError, match=rf"^The limit {name} is {value}; it should be greater than"):
        plan_of(toy.catalogue, "toy", "copy", limits={name: value})
