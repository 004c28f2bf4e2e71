"""The executor `local`: runs in processes of their own, which may be killed, suspended, and cancelled."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from mleredux._core.executors import elsewhere
from mleredux._core.executors.local import EXECUTOR
from mleredux._core.executors.node import main
from mleredux._core.executors.tickets import read_ticket
from mleredux._core.store import Run


def until(there: Callable[[], Any], seconds: float = 90) -> Any:
    end = time.monotonic() + seconds
    while not (found := there()):
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)
    return found


def process_of(run: Run) -> int:
    return int((read_ticket(run.path)["job"] or "0").partition("-")[0])


@pytest.fixture
def follow(toy: Any) -> Callable[[list[Run]], threading.Thread]:
    def start(runs: list[Run]) -> threading.Thread:
        thread = threading.Thread(target=toy.pipeline(executor=EXECUTOR).execute, args=(runs,), daemon=True)
        thread.start()
        return thread

    return start


def test_each_run_is_executed_in_a_process_of_its_own(toy: Any) -> None:
    runs = [toy.new() for _ in range(2)]
    toy.pipeline(executor=EXECUTOR).execute(runs)
    assert [run.state for run in runs] == ["done", "done"]
    assert len({process_of(run) for run in runs} - {os.getpid()}) == 2
    assert all(
        not run.alive and [event.seq for event in run.events()] == list(range(len(run.events()))) for run in runs
    )


def test_a_process_that_is_killed_or_suspended_is_replaced(toy: Any, follow: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(elsewhere, "_SILENT_SECONDS", 5.0)
    killed, suspended = toy.new("sleeper"), toy.new("sleeper")
    thread = follow([killed, suspended])
    for run, number in ((killed, signal.SIGKILL), (suspended, signal.SIGSTOP)):
        until(lambda: run.log.state.agent_started)  # noqa: B023 - called immediately
        first = process_of(run)
        os.kill(first, number)
        until(lambda: process_of(run) not in (0, first))  # noqa: B023
        until(lambda: "adopted" in [one.data["status"] for one in run.events() if one.type == "agent"])  # noqa: B023
    for run in (killed, suspended):
        run.ask_to_cancel()
    thread.join(60)
    assert [run.state for run in (killed, suspended)] == ["cancelled", "cancelled"]


def test_a_job_whose_ticket_was_replaced_does_nothing(toy: Any) -> None:
    run = toy.new()
    before = run.events()
    main(run.path, "a nonce of an earlier ticket")
    assert run.events() == before and not (run.path / ".lease").exists()
