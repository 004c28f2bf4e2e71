"""How a server recovers its state from disk when it starts: whatever was lost or interrupted before."""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mleredux._core.plugins import Catalogue
from mleredux._core.store import Run, RunStore
from mleredux.errors import SandboxError
from mleredux.models import Cause, Limits, State
from mleredux_server.accounts.accounts import make_user
from mleredux_server.accounts.security import Caller
from mleredux_server.app import make_service
from mleredux_server.database.tables import BuildRow, Idempotency, Job, Project, RunRow, User, now
from mleredux_server.runs.requests import make_runs, plan_run
from mleredux_server.runs.summary import facts_of
from mleredux_server.scheduler import dispatcher
from mleredux_server.scheduler.actions import TRASH
from mleredux_server.scheduler.adoption import NOTE_FILE, write_note
from mleredux_server.scheduler.jobs import Jobs, Started, end_run
from mleredux_server.scheduler.startup import recover, sweep
from mleredux_server.scheduler.tally import Tally
from mleredux_server.schemas.runs import KeptRequest, RunRequest
from mleredux_server.service import Service
from mleredux_server.settings import Settings
from mleredux_server.work.run import sweep as sweep_attempts
from sqlalchemy import event, select, update

ASKED = RunRequest(task="toy", agent="toy-nearest", sandbox="process", labels={"of": "me"}, priority=7)


def opened(home: Path) -> Service:
    settings = Settings(runs_dir=home / "runs", data_dir=home / "data")
    service = make_service(settings, Catalogue(load=["mleredux_testing.toys"]))
    with service.database.writing() as session:
        if session.scalar(select(User)) is None:
            make_user(session, "root", admin=True)
    return service


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = opened(tmp_path)
    yield made
    made.database.close()


def caller(service: Service) -> Caller:
    with service.database.reading() as session:
        user, project = session.scalars(select(User)).one(), session.scalars(select(Project)).one()
    return Caller(user.id, user.name, True, "tok", frozenset({"admin"}), {project.id: "owner"})


def new(service: Service) -> Run:
    [row] = make_runs(service, caller(service), [plan_run(service, ASKED)], ASKED)
    return service.store.get(row.id)


def state_of(service: Service, run_id: str) -> tuple[str, str] | None:
    """Return the states of the job and of the row."""
    with service.database.reading() as session:
        found = session.execute(
            select(Job.state, RunRow.status).join(RunRow, RunRow.id == Job.id).where(Job.id == run_id)
        ).one_or_none()
    return tuple(found) if found else None


def end(run: Run, state: State = State.DONE, cause: Cause | None = None, tokens: int | None = None) -> None:
    if tokens is not None:
        run.emit("gateway", status="closed", use={"prompt_tokens": tokens, "completion_tokens": 1})
    for each in (State.PREPARING, State.PRODUCING):
        run.enter(each)
    run.enter(state, **({"cause": cause, "message": "Some reason."} if cause else {}))


def test_unacknowledged_runs_are_removed(service: Service) -> None:
    run, kept = new(service), new(service)
    with service.database.writing() as session:
        session.get_one(Job, run.id).state = "creating"
        user = session.scalars(select(User)).one().id
        session.add(Idempotency(user_id=user, key="k", request="x" * 64))
        session.add(Idempotency(user_id=user, key="done", request="x" * 64, status=201))
    recover(service)
    assert state_of(service, run.id) is None and not run.path.exists()
    assert state_of(service, kept.id) == ("queued", "queued")
    with service.database.reading() as session:
        assert session.scalars(select(Idempotency.key)).all() == ["done"]


def test_a_lost_database_loses_no_run(service: Service, tmp_path: Path) -> None:
    done, waiting, working = new(service), new(service), new(service)
    end(done)
    working.enter(State.PREPARING)
    service.database.close()
    for path in service.settings.state_dir.glob("service.sqlite*"):
        path.unlink()

    again = opened(tmp_path)
    assert working.lock.acquire(), "a worker of the previous server continues it"
    started = recover(again)
    working.lock.release()
    assert state_of(again, done.id) == ("ended", "done")
    assert state_of(again, waiting.id) == ("queued", "queued")
    assert state_of(again, working.id) == ("started", "preparing") and set(started) == {working.id}
    with again.database.reading() as session:
        row = session.get_one(RunRow, waiting.id)
    assert (row.labels, row.priority, row.task, row.sandbox) == ({"of": "me"}, 7, "toy", "process")
    kept = KeptRequest.model_validate(row.request)
    assert kept == KeptRequest(**ASKED.model_dump(), project_secrets=True), "its new owner lends nothing"
    again.database.close()


def test_runs_of_the_command_line_are_listed_and_followed_but_not_started(service: Service) -> None:
    planned = plan_run(service, ASKED).plan.model_copy(update={"limits": Limits(time_limit=7)})
    run = service.store.create(planned, service.data.path)
    recover(service)
    assert state_of(service, run.id) == ("ended", "queued")
    end(run, State.FAILED, Cause.AGENT_CRASHED)
    Jobs(service, Tally(), lambda *_: None).follow_foreign()
    assert state_of(service, run.id) == ("ended", "failed")
    with service.database.reading() as session:
        row = session.get_one(RunRow, run.id)
    assert (row.cause, row.message) == ("agent_crashed", "Some reason.") and row.ended_at is not None
    assert KeptRequest.model_validate(row.request).limits.time_limit == 7


def test_runs_of_before_a_migration_are_read_again_a_few_at_once(service: Service) -> None:
    runs = [new(service) for _ in range(3)]
    for run in runs:
        end(run, State.FAILED, Cause.AGENT_CRASHED)
    recover(service)
    (runs[1].path / "run.json").write_text("{")
    with service.database.writing() as session:
        session.execute(update(Job).values(state="ended"))
        session.execute(update(RunRow).values(status="failed", log_bytes=-1, curve=None))
    jobs = Jobs(service, Tally(), lambda *_: None)
    for _ in range(3):
        jobs.follow_foreign()
    with service.database.reading() as session:
        read = {row.id: row.curve for row in session.scalars(select(RunRow).where(RunRow.log_bytes > 0))}
    assert read == {runs[0].id: [], runs[2].id: []}


def test_a_run_with_a_missing_directory_ends_and_an_unreadable_one_is_skipped(service: Service) -> None:
    gone, damaged = new(service), service.store.path / "damaged"
    shutil.rmtree(gone.path)
    damaged.mkdir()
    (damaged / "run.json").write_text("{")
    recover(service)
    assert state_of(service, gone.id) == ("ended", "failed")
    assert state_of(service, "damaged") is None


def test_an_interrupted_deletion_is_finished(service: Service) -> None:
    run = new(service)
    trash = service.settings.state_dir / "trash"
    trash.mkdir()
    run.path.rename(trash / f"{run.id}-0123abcd")
    recover(service)
    sweep(service)
    assert state_of(service, run.id) is None and not list(trash.iterdir())


def test_an_interrupted_cancellation_is_finished(service: Service) -> None:
    run = new(service)
    with service.database.writing() as session:
        session.get_one(Job, run.id).cancel = True
    run.enter(State.CANCELLED, cause=Cause.CANCELLED, message="A user cancelled the run.")
    recover(service)
    assert state_of(service, run.id) == ("ended", "cancelled")


def test_tokens_of_language_models_are_counted_once_for_the_project(service: Service) -> None:
    run = new(service)

    def ended() -> int:
        with service.database.writing() as session:
            end_run(session, run.id, facts_of(run), 1)
        with service.database.reading() as session:
            return session.scalars(select(Project.llm_tokens_used)).one()

    end(run, State.FAILED, Cause.ENVIRONMENT_BROKE, tokens=99)
    assert (ended(), ended()) == (100, 100)
    with service.database.writing() as session:
        session.get_one(Job, run.id).state = "queued"
    run.enter(State.QUEUED)
    end(run, tokens=149)  # the gateway counts earlier attempts too
    assert (ended(), ended()) == (150, 150)


def test_a_live_worker_keeps_its_job_and_a_dead_one_loses_it(service: Service) -> None:
    import os

    from mleredux._core.sandboxes.processes import birth

    run, jobs = new(service), Jobs(service, Tally(), lambda *_: None)
    job = Started(run.id, "run", 1, now(), os.getpid(), birth(os.getpid()))
    with service.database.writing() as session:
        session.get_one(Job, run.id).state = "started"
    assert not jobs.follow(job, ours=False), "the worker may be about to take the lock"
    job.birth = 1.0  # another process of that number
    assert jobs.follow(job, ours=False) and state_of(service, run.id) == ("queued", "queued")
    assert attempts(service, run.id) == 0, "it never started it"


def test_workers_that_started_a_job_and_died_are_counted(service: Service) -> None:
    run, jobs = new(service), Jobs(service, Tally(), lambda *_: None)
    for number in (1, 2):
        with service.database.writing() as session:
            session.get_one(Job, run.id).state = "started"
        (run.path / ".attempt").write_text(str(number))
        assert jobs.follow(Started(run.id, "run", number, now(), None, None), ours=False)
        assert attempts(service, run.id) == number
    with service.database.writing() as session:
        session.get_one(Job, run.id).state = "started"
    (run.path / ".attempt").write_text("3")
    assert jobs.follow(Started(run.id, "run", 3, now(), None, None), ours=False)
    assert state_of(service, run.id) == ("ended", "failed")


def test_a_build_whose_message_no_database_can_store_completely_ends(service: Service) -> None:
    """Its quoted log may not be valid text: refusing it would block the only worker for builds forever."""
    project, asked = caller(service), now()
    with service.database.writing() as session:
        common = {"id": "bld_odd", "project_id": next(iter(project.projects)), "user_id": project.user_id}
        session.add(Job(**common, kind="build", state="started", created_at=asked))
        session.add(BuildRow(**common, agent="a", sandbox="docker", options={}, status="building", created_at=asked))
    folder = service.job_dir("build", "bld_odd")
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps({"result": None, "error": "It said: a\0b\ud800c 🦀"}))
    jobs = Jobs(service, Tally(), lambda *_: None)
    assert jobs.follow(Started("bld_odd", "build", 1, asked, None, None), ours=False)
    with service.database.reading() as session:
        assert session.get_one(Job, "bld_odd").state == "ended"
        assert session.get_one(BuildRow, "bld_odd").message == "It said: a\ufffdb\ufffdc 🦀"


def attempts(service: Service, run_id: str) -> int:
    with service.database.reading() as session:
        return session.get_one(Job, run_id).attempts


def test_a_damaged_record_is_not_trusted(service: Service) -> None:
    run = service.store.create(plan_run(service, ASKED).plan, service.data.path)
    write_note(run, ASKED, None)
    (run.path / NOTE_FILE).write_text(json.dumps({"request": {"task": "toy\x00"}}))
    recover(service)
    assert state_of(service, run.id) == ("ended", "queued")


def test_a_thousand_runs_without_rows_are_adopted_within_seconds(service: Service) -> None:
    first = new(service)
    end(first)
    _copies(service.store, first, 1000)
    began = time.process_time()
    recover(service)
    taken = time.process_time() - began
    with service.database.reading() as session:
        assert len(session.scalars(select(RunRow.id)).all()) == 1001
    began = time.process_time()
    recover(service)
    again = time.process_time() - began
    assert taken < 6 and again < 1, f"{taken:.2f} s, and {again:.2f} s the second time"


def _copies(store: RunStore, run: Run, count: int) -> None:
    asked: dict[str, Any] = json.loads((run.path / "run.json").read_text())
    for number in range(count):
        name = f"{run.id}{number:04d}"
        asked["spec"]["id"] = name
        (store.path / name).mkdir()
        (store.path / name / "run.json").write_text(json.dumps(asked))
        for file in ("events.jsonl", NOTE_FILE):
            (store.path / name / file).write_bytes((run.path / file).read_bytes())


@pytest.mark.parametrize(
    "error",
    [sqlite3.OperationalError("database is locked"), ConnectionResetError("by the database"), MemoryError()],
    ids=["locked", "connection", "memory"],
)
def test_the_clean_up_is_repeated_even_if_the_database_does_not_respond(
    service: Service, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    for name in ("_SWEEP_AGAIN", "_SWEEP_EVERY"):
        monkeypatch.setattr(dispatcher, name, 0.01)
    left = service.settings.state_dir / TRASH / "of-a-deleted-run"
    left.mkdir(parents=True)
    failed = 0

    def fail(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        nonlocal failed
        if "DISTINCT" in statement and failed < 3:
            failed += 1
            assert left.exists()
            raise error

    event.listen(service.database.engine, "before_cursor_execute", fail)
    server, deadline = dispatcher.Dispatcher(service), time.monotonic() + 60
    sweeping = threading.Thread(target=server._sweep)
    sweeping.start()
    for _ in range(2):
        while left.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        left.mkdir()
    server._stopping.set()
    sweeping.join(60)
    assert not sweeping.is_alive() and failed == 3


@pytest.mark.parametrize("responds", [True, False])
def test_leftovers_of_a_run_that_is_cancelled_while_its_sandbox_does_not_respond_are_removed_later(
    service: Service, monkeypatch: pytest.MonkeyPatch, responds: bool
) -> None:
    run, suspected = new(service), list[tuple[str, tuple[str, str] | None]]()
    run.enter(State.PREPARING)
    run.ask_to_cancel()
    with service.database.writing() as session:
        session.execute(update(Job).where(Job.id == run.id).values(state="started"))

    def swept(_owner: str, _alive: Callable[[str], bool]) -> list[str]:
        if not responds:
            raise SandboxError("The engine does not respond.")
        return []

    monkeypatch.setattr(service.catalogue.sandbox(run.spec.sandbox), "sweep", swept)
    jobs = Jobs(service, Tally(), lambda name: suspected.append((name, state_of(service, run.id))))
    assert jobs.follow(Started(run.id, "run", 1, now(), None, None, outcome={}), ours=False)
    assert suspected == ([] if responds else [("process", ("ended", "cancelled"))]), "only an ended run is swept"


@pytest.mark.parametrize("place", ["at the start", "after a worker", "after an attempt"])
def test_a_sandbox_may_sweep_lazily(service: Service, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    run, swept = new(service), list[str]()

    def lazy(_owner: str, alive: Callable[[str], bool]) -> Iterator[str]:
        for run_id in (run.id, "left"):
            if not alive(run_id):
                swept.append(run_id)
                yield run_id

    monkeypatch.setattr(service.catalogue.sandbox(run.spec.sandbox), "sweep", lazy)
    if place == "at the start":
        sweep(service)
    elif place == "after a worker":
        Jobs(service, Tally(), lambda _sandbox: None)._sweep(run)
    else:
        sweep_attempts(SimpleNamespace(catalogue=service.catalogue, store=service.store), run)  # type: ignore[arg-type]
    assert swept == (["left"] if place == "at the start" else [run.id])
