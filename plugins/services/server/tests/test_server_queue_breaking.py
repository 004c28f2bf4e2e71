"""The database connection breaks at any statement of the scheduler: each run still ends, and is executed once; and
what runs need does not respond for minutes: they wait.

The statements and commits of a scenario are counted, and each in succession fails: before or after it was executed,
alone or with all that follow for a while. A commit that fails after it was executed is one whose response was lost.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from io import RawIOBase
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from mleredux._core.plugins import Catalogue
from mleredux._core.sandboxes.processes import birth
from mleredux._core.stages.failures import failure_of
from mleredux._core.store import Run
from mleredux.errors import DataError, SandboxError, StoreError
from mleredux.models import State
from mleredux.models.events import Attempt, StageEnded
from mleredux_server.accounts.accounts import make_user
from mleredux_server.accounts.security import Caller
from mleredux_server.app import make_service
from mleredux_server.database import Database
from mleredux_server.database.tables import Job, Project, RunRow, User
from mleredux_server.runs.requests import make_runs, plan_run
from mleredux_server.scheduler.dispatcher import Dispatcher
from mleredux_server.scheduler.pool import Pool, WorkerMessage, WorkerProcess
from mleredux_server.schemas.runs import RunRequest
from mleredux_server.service import Service
from mleredux_server.settings import Settings
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

EVERY = int(os.environ.get("MLEREDUX_BREAKING_EVERY", "15"))
"""Every how many points other than commits one fails; 1: all."""
ASKED = RunRequest(task="toy", agent="toy-nearest", sandbox="process")


class Breaking:
    """A database whose connections break at given points.

    Attributes:
        passed: Points since `at` was called: each statement and commit, before and after it.
    """

    def __init__(self, database: Database) -> None:
        dialect: Any = database.engine.dialect
        for name in ("do_execute", "do_executemany", "do_commit"):
            setattr(dialect, name, self._around(getattr(dialect, name), name))
        dialect.is_disconnect = lambda error, *_: "broke off" in str(error)
        self.passed: list[str] = []
        self._failing = range(0)

    def at(self, first: int = 0, count: int = 0) -> None:
        """Make this many points fail from now on, starting with that one."""
        self.passed, self._failing = [], range(first, first + count)

    def _around(self, do: Callable[..., Any], name: str) -> Callable[..., Any]:
        def done(*arguments: Any, **more: Any) -> None:
            self._pass(f"before {name}")
            do(*arguments, **more)
            self._pass(f"after {name}")

        return done

    def _pass(self, point: str) -> None:
        self.passed.append(point)
        if len(self.passed) - 1 in self._failing:
            raise sqlite3.OperationalError(f"the connection broke off {point}")


class Pipe(RawIOBase):
    """A worker's input."""

    def __init__(self) -> None:
        self.told: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.told.append(bytes(data))
        return len(data)


class HandPool(Pool):
    """Workers that are not processes: they make one step of progress when told to."""

    worked: Counter[str]

    def warm(self, busy: int) -> None:
        """Start none ahead."""

    def _start(self, lane: str) -> WorkerProcess:
        process: Any = SimpleNamespace(pid=os.getpid(), stdin=Pipe(), told=0)
        worker = WorkerProcess(lane, process, birth(os.getpid()), ready=True)
        self._workers.append(worker)
        return worker

    def step(self, runs: Path) -> None:
        """Advance each worker that has a job by one step: it starts the job, then ends and reports it."""
        for worker in self._workers:
            process: Any = worker.process
            if len(process.stdin.told) == process.told:
                continue
            assert worker.job is not None
            run = Run(runs / worker.job)
            if run.state is State.QUEUED:
                run.enter(State.PREPARING)
                self.worked[run.id] += 1
                continue
            for state in (State.PRODUCING, State.DONE) if not run.state.final else ():
                run.enter(state)
            process.told += 1
            self._messages.put(WorkerMessage(worker, {"done": run.id, "disk_mb": 1}))


class Place:
    """A service with a scheduler whose rounds the test triggers itself."""

    def __init__(self, home: Path) -> None:
        settings = Settings(runs_dir=home / "runs", data_dir=home / "data", workers=1)
        self.service: Service = make_service(settings, Catalogue(load=["mleredux_testing.toys"]))
        with self.service.database.writing() as session:
            make_user(session, "root", admin=True)
        with self.service.database.reading() as session:
            user, project = session.scalars(select(User)).one(), session.scalars(select(Project)).one()
        self.caller = Caller(user.id, user.name, True, "tok", frozenset({"admin"}), {project.id: "owner"})
        self.dispatcher = Dispatcher(self.service)
        self.pool = HandPool(settings, self.service.catalogue, self.service.wake.set, self.dispatcher.tally)
        self.pool.worked = Counter()
        self.dispatcher._pool = self.pool
        self.breaking = Breaking(self.service.database)

    def make(self, count: int) -> list[str]:
        planned = [plan_run(self.service, ASKED) for _ in range(count)]
        return [row.id for row in make_runs(self.service, self.caller, planned, ASKED)]

    def round(self) -> None:
        """Run a round as the thread does, but without its pauses."""
        dispatcher = self.dispatcher
        dispatcher._scan_at = 0.0
        dispatcher._not_before.clear()
        try:
            dispatcher._tick(True)
        except OperationalError:
            dispatcher._poll_at = 0.0
        self.pool.step(self.service.store.path)

    @property
    def idle(self) -> bool:
        """Return whether nothing is running, as far as the scheduler knows."""
        return not any(worker.job for worker in self.pool._workers) and not self.dispatcher._jobs.started

    def states(self, ids: list[str]) -> set[tuple[str, str]]:
        with self.service.database.reading() as session:
            found = session.execute(
                select(Job.state, RunRow.status).join(RunRow, RunRow.id == Job.id).where(Job.id.in_(ids))
            )
            return {(job, row) for job, row in found}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with structlog.testing.capture_logs():
        made = Place(Path(tmp_path_factory.mktemp("breaking")))
        yield made
        made.service.database.close()


def rounds_until_the_end(place: Place, ids: list[str]) -> int:
    """Run rounds without faults until all have ended."""
    for number in range(30):
        if place.states(ids) == {("ended", "done")}:
            return number
        place.round()
    with place.service.database.reading() as session:
        jobs = [(job.id, job.state, job.attempts) for job in session.scalars(select(Job).where(Job.id.in_(ids)))]
    raise AssertionError(f"without an end: {place.states(ids)} {jobs} {place.dispatcher._jobs.started}")


@pytest.mark.parametrize("count", [1, 25], ids=["once", "for-a-while"])
def test_wherever_the_database_connection_breaks_each_run_ends_and_is_executed_once(place: Place, count: int) -> None:
    """Two runs and one worker: the second is assigned when the first has ended."""
    ids = place.make(2)
    place.breaking.at()
    for _ in range(12):
        place.round()
    points = list(place.breaking.passed)
    assert place.idle and place.states(ids) == {("ended", "done")}
    for first, point in enumerate(points):
        if "commit" not in point and first % EVERY:
            continue
        ids = place.make(2)
        place.breaking.at(first, count)
        while len(place.breaking.passed) < first + count:
            place.round()
        failed = place.breaking.passed[first]
        place.breaking.at()
        rounds_until_the_end(place, ids)
        place.round()
        assert place.idle, failed
        assert [place.pool.worked[run_id] for run_id in ids] == [1, 1], failed
        assert len(place.pool._workers) <= 2, failed


STAGES = (State.PREPARING, State.BUILDING, State.RUNNING, State.GRADING)
OUTAGES: dict[str, Exception] = {
    "names": socket.gaierror(-3, "Temporary failure in name resolution"),
    "engine": SandboxError("The Docker engine can't be reached at its local socket (ConnectionRefusedError)."),
    "store": StoreError("The object store s3://lab does not respond normally: SlowDown."),
    "download": DataError("Kaggle can't be reached: Read timed out."),
    "network": ConnectionRefusedError(111, "Connection refused"),
    "locked": sqlite3.OperationalError("database is locked"),
}


class FailingPool(HandPool):
    """Workers whose runs fail in one stage until a moment of the test's clock.

    Attributes:
        starts: Whether an agent is started before the stage fails.
    """

    clock, until, starts = 0.0, 0.0, False
    stage = State.PREPARING
    error: Exception

    def step(self, runs: Path) -> None:
        """Work on each job until its run fails or is done."""
        for worker in self._workers:
            process: Any = worker.process
            if len(process.stdin.told) == process.told:
                continue
            assert worker.job is not None
            run = Run(runs / worker.job)
            self.worked[run.id] += 1
            failure = None
            for stage in STAGES:
                if stage in run.log.state.finished or failure:
                    continue
                run.enter(stage)
                if stage is self.stage and self.clock < self.until:
                    failure = failure_of(self.error)
                    if self.starts:
                        run.emit(Attempt(status="starting"))
                run.emit(StageEnded(stage=stage, status="failed" if failure else "finished"))
            run.enter(State.PRODUCING)
            run.enter(State.FAILED if failure else State.DONE, **(vars(failure) if failure else {}))
            process.told += 1
            self._messages.put(WorkerMessage(worker, {"done": run.id, "disk_mb": 1}))


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with structlog.testing.capture_logs():
        made = Place(Path(tmp_path_factory.mktemp("waiting")))
        pool = FailingPool(made.service.settings, made.service.catalogue, made.service.wake.set, made.dispatcher.tally)
        made.pool = made.dispatcher._pool = pool
        pool.worked = Counter()
        yield made
        made.service.database.close()


def outage(
    place: Place, monkeypatch: pytest.MonkeyPatch, stage: State, error: Exception, starts: bool
) -> Iterator[RunRow]:
    """Make a run that fails in a stage for the first 30 minutes, and yield its row after each half minute."""
    pool: Any = place.pool
    pool.stage, pool.error, pool.starts = stage, error, starts
    pool.clock = time.monotonic()
    pool.until = pool.clock + 1800
    monkeypatch.setattr(
        "mleredux_server.scheduler.dispatcher.time", SimpleNamespace(monotonic=lambda: pool.clock, time=time.time)
    )
    monkeypatch.setattr(place.dispatcher._broken, "known", dict)  # the sandbox itself works
    (run_id,) = place.make(1)
    while pool.clock < pool.until + 300:
        place.dispatcher._tick(True)
        pool.step(place.service.store.path)
        pool.clock += 30
        with place.service.database.reading() as session:
            yield session.get_one(RunRow, run_id)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("kind", OUTAGES)
def test_a_run_waits_with_the_reason_as_long_as_an_outage_lasts(
    waiting: Place, monkeypatch: pytest.MonkeyPatch, kind: str, stage: State
) -> None:
    reasons, pool = set(), waiting.pool
    for row in outage(waiting, monkeypatch, stage, OUTAGES[kind], starts=False):
        with waiting.service.database.reading() as session:
            reasons.add(session.get_one(Job, row.id).waiting_for)
        if row.status in ("done", "failed"):
            break
    assert row.status == "done", row.message
    assert failure_of(OUTAGES[kind]).message in reasons
    assert 10 < pool.worked[row.id] < 40, "neither given up nor tried all the time"


@pytest.mark.parametrize(
    ("error", "starts"),
    [(SandboxError("The program podman is not installed."), False), (OUTAGES["names"], True)],
    ids=["does-not-pass", "agents-are-started"],
)
def test_a_run_that_would_fail_or_cost_each_time_is_given_up(
    waiting: Place, monkeypatch: pytest.MonkeyPatch, error: Exception, starts: bool
) -> None:
    *_, row = outage(waiting, monkeypatch, State.RUNNING, error, starts)
    assert (row.status, row.cause, waiting.pool.worked[row.id]) == ("failed", "environment_broke", 3)
