"""The executor `local`: runs in processes of their own, which may be killed, suspended, and cancelled."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mleredux._core.store import Run
from mleredux._core.store.run import read_ticket, write_ticket
from mleredux.errors import ExecutorError, StoreError
from mleredux.models import Limits
from mleredux.plugin.executor import JobSpec, JobStatus
from mleredux_executor_nodes import local, remote_runs
from mleredux_executor_nodes.local import EXECUTOR, LocalExecutor
from mleredux_executor_nodes.node import main
from mleredux_testing import NotConforming, check_executor


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
    monkeypatch.setattr(remote_runs, "_SILENT_SECONDS", 5.0)
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


class Refusing(LocalExecutor):
    """An executor whose first job dies, and that refuses the next requests."""

    def __init__(self, refusals: int) -> None:
        super().__init__()
        self.asked, self.refusals = 0, refusals

    def submit(self, specs: Sequence[JobSpec]) -> Sequence[str]:
        self.asked += 1
        if 1 < self.asked <= 1 + self.refusals:
            raise ExecutorError("It is being restarted.")
        jobs = super().submit(specs)
        if self.asked == 1:
            self.cancel(jobs[0])
        return jobs


def test_a_job_that_never_starts_its_command_is_replaced(toy: Any, monkeypatch: Any) -> None:
    class Stuck(LocalExecutor):
        given = 0

        def submit(self, specs: Sequence[JobSpec]) -> Sequence[str]:
            self.given += 1
            monkeypatch.setattr(remote_runs, "_START_SECONDS", 2.0 if self.given == 1 else 120.0)
            stuck = [replace(spec, command=("sleep", "600")) for spec in specs]
            return super().submit(stuck if self.given == 1 else specs)

    executor, run, begun = Stuck(), toy.new(), time.monotonic()
    toy.pipeline(executor=executor).execute([run])
    assert (run.state, executor.given) == ("done", 2) and time.monotonic() - begun > 2


def test_refusals_are_no_failed_jobs(toy: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(remote_runs, "_PAUSE_SECONDS", 0.0)
    executor, run = Refusing(refusals=5), toy.new()
    toy.pipeline(executor=executor).execute([run])
    assert (run.state, executor.asked) == ("done", 7)


def test_an_executor_that_refuses_for_long_is_not_asked_forever(toy: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(remote_runs, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(remote_runs, "_REFUSED_SECONDS", 2.0)
    executor, run = Refusing(refusals=10**6), toy.new()
    toy.pipeline(executor=executor).execute([run])
    assert (run.state, run.cause) == ("failed", "environment_broke") and executor.asked > 2
    assert "local has rejected it for 0 minutes: It is being restarted." in str(run.log.state.message)


@pytest.mark.parametrize("failing", ["the first call", "every call of a while", "one run for a while"])
def test_an_object_store_that_fails_for_a_moment_fails_no_run(toy: Any, monkeypatch: Any, failing: str) -> None:
    monkeypatch.setattr(remote_runs, "_PAUSE_SECONDS", 0.1)
    runs, calls = [toy.new() for _ in range(4)], []

    class Hiccups(LocalExecutor):
        def submit(self, specs: Sequence[JobSpec]) -> Sequence[str]:
            calls.append([spec.run_id for spec in specs])
            fails = {
                "the first call": len(calls) == 1,
                "every call of a while": len(calls) < 8,
                "one run for a while": runs[2].id in calls[-1] and len(calls) < 9,
            }
            if fails[failing]:
                raise StoreError("The object store does not respond.")
            return super().submit(specs)

    toy.pipeline(executor=Hiccups()).execute(runs)
    assert [run.state for run in runs] == ["done"] * 4
    assert len(calls) > 1


def test_an_object_store_that_never_responds_is_not_asked_forever(toy: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(remote_runs, "_PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(remote_runs, "_REFUSED_SECONDS", 2.0)

    class Gone(LocalExecutor):
        def submit(self, specs: Sequence[JobSpec]) -> Sequence[str]:
            raise StoreError("The object store does not respond.")

    runs = [toy.new() for _ in range(3)]
    with pytest.raises(StoreError):
        toy.pipeline(executor=Gone()).execute(runs)
    assert {(run.state, run.log.state.message) for run in runs} == {("failed", "The object store does not respond.")}


def test_a_run_that_an_object_store_permanently_refuses_fails_at_once_and_alone(toy: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(remote_runs, "_PAUSE_SECONDS", 0.1)
    runs = [toy.new() for _ in range(3)]

    class Strict(LocalExecutor):
        def submit(self, specs: Sequence[JobSpec]) -> Sequence[str]:
            if runs[1].id in [spec.run_id for spec in specs]:
                raise StoreError("The object store refused a request: Access Denied.")
            return super().submit(specs)

    toy.pipeline(executor=Strict()).execute(runs)
    assert [run.state for run in runs] == ["done", "failed", "done"]
    assert runs[1].log.state.message == "The object store refused a request: Access Denied."


def test_runs_that_were_given_before_are_followed_also_while_the_engine_is_down(toy: Any) -> None:
    class Down(LocalExecutor):
        refusals = 3

        def poll(self, jobs: Any) -> Any:
            self.refusals -= 1
            if self.refusals >= 0:
                raise ExecutorError("It is being restarted.")
            return super().poll(jobs)

        def nodes(self) -> Any:
            raise ExecutorError("It is being restarted.")

    executor, run = Down(), toy.new()
    write_ticket(run.path, {"executor": "local", "nonce": "n", "job": "1-0"})
    toy.pipeline(executor=executor).execute([run])
    assert run.state == "done" and executor.refusals < 0


def test_an_interrupt_while_runs_are_given_cancels_them(toy: Any) -> None:
    class Interrupted(LocalExecutor):
        def submit(self, specs: Sequence[JobSpec]) -> Sequence[str]:
            raise KeyboardInterrupt

    run = toy.new()
    toy.pipeline(executor=Interrupted()).execute([run])
    assert run.state == "cancelled"


def test_a_number_that_is_used_again_is_another_process(tmp_path: Path, monkeypatch: Any) -> None:
    spec = JobSpec("run", tmp_path, ("sleep", "60"), Limits(), 60)
    births: dict[float | None, str] = {}
    for born, now in ((12345678.0, 12345679.0), (None, None)):
        monkeypatch.setattr(local, "birth", lambda _pid: born)  # noqa: B023 - called immediately
        executor = LocalExecutor()
        [job] = executor.submit([spec])
        births[born] = executor.poll([job])[job].state
        monkeypatch.setattr(local, "birth", lambda _pid: now)  # noqa: B023
        assert executor.poll([job])[job].state == "ended"
        process = executor._started[job]
        executor.cancel(job)
        assert process.poll() is None, "another process was killed"
        process.kill(), process.wait()
    assert births == {12345678.0: "running", None: "ended"}


def test_a_run_that_its_executor_refuses_does_not_stay_queued(toy: Any) -> None:
    class Closed(LocalExecutor):
        def submit(self, specs: Sequence[JobSpec]) -> Sequence[str]:
            raise ExecutorError("It takes no jobs today.")

    run = toy.new()
    with pytest.raises(ExecutorError, match="no jobs today"):
        toy.pipeline(executor=Closed()).execute([run])
    assert (run.state, run.log.state.message) == ("failed", "It takes no jobs today.")


def test_it_conforms_and_what_does_not_is_named(tmp_path: Path) -> None:
    class Forgetful(LocalExecutor):
        def poll(self, jobs: Any) -> Any:
            return {job: JobStatus("ended") for job in jobs}

    assert check_executor("local", tmp_path / "good").wrong == []
    with pytest.raises(NotConforming, match="a running job is reported as") as caught:
        check_executor(Forgetful(), tmp_path / "bad", seconds=3)
    assert "stop() leaves processes" not in str(caught.value)


class Quiet:
    """An executor whose jobs have the status that a test sets."""

    id, title, allocates = "quiet", "For this test", True

    def __init__(self) -> None:
        self.status, self.stopped = JobStatus("running", "n1"), list[str]()

    def submit(self, specs: Sequence[JobSpec]) -> list[str]:
        return [spec.run_id for spec in specs]

    def poll(self, jobs: Sequence[str]) -> dict[str, JobStatus]:
        return dict.fromkeys(jobs, self.status)

    def cancel(self, job: str) -> None:
        self.stopped.append(job)

    def fetch(self, _spec: JobSpec) -> None:
        """There is nothing to update."""


@pytest.mark.parametrize("state", ["running", "waiting"])
def test_the_quieter_a_run_is_the_less_often_its_files_are_read(
    toy: Any, monkeypatch: pytest.MonkeyPatch, state: Any
) -> None:
    now, looks = [time.monotonic()], list[float]()

    def lease(_folder: Path) -> dict[str, Any]:
        looks.append(now[0])
        return {"beat": len(looks)}

    monkeypatch.setattr(remote_runs, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(remote_runs, "read_lease", lease)
    engine, run = Quiet(), toy.new()
    engine.status = JobStatus(state, "n1")
    followed = remote_runs.RemoteRuns(toy.pipeline(executor=engine), engine)  # type: ignore[arg-type]
    followed.add([run])

    def steps(seconds: float) -> list[Run]:
        ended = []
        for _ in range(int(2 * seconds)):
            now[0] += 0.5
            ended += followed.step()
        return ended

    steps(5)
    assert len(looks) == 10, "a new run is followed closely"
    steps(595)
    assert len(looks) < (120 if state == "running" else 320), "not 1,200"
    before = len(looks)
    engine.status = JobStatus(state, "n2")
    steps(0.5)
    assert len(looks) == before + 1, "at once if its job changes"
    run.ask_to_cancel()
    assert steps(31 if state == "running" else 2.5) == [run]
    assert (run.state, engine.stopped) == ("cancelled", [run.id])
