"""How much of a long queue is read, and how much of it is written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from mleredux_server.accounts.accounts import make_user
from mleredux_server.database import Database
from mleredux_server.database.tables import Job, Project, RunRow, User, now
from mleredux_server.scheduler import backlog as queued
from mleredux_server.scheduler.backlog import Queued, held_back, queued_runs, write_reasons
from mleredux_server.scheduler.decision import NOTHING, TURN, Demand, World, decide
from mleredux_server.schemas.accounts import Quota
from sqlalchemy import event, insert, select

BEGAN = now()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(f"sqlite:///{tmp_path / 'service.sqlite'}")
    opened.migrate()
    yield opened
    opened.close()


FIELDS = Queued._fields[:-1]


def run_row(job: Job, sandbox: str) -> dict[str, object]:
    words = {"task": "t", "agent": "a", "sandbox": sandbox, "network": "none", "status": "queued", "seed": 0}
    empty: dict[str, dict[str, object]] = {name: {} for name in ("limits", "options", "labels", "request")}
    return {"id": job.id, "project_id": job.project_id, "user_id": job.user_id, **words, **empty}


def queue(database: Database, user: str, count: int, *, part: int = 0, **more: object) -> list[str]:
    """Queue runs of a user, who is new with part 0, the first first; return their ids."""
    ids = [f"{user}-{part}-{number:05d}" if part else f"{user}-{number:05d}" for number in range(count)]
    with database.writing() as session:
        made = session.scalars(select(User).where(User.name == user)).one() if part else make_user(session, user)
        project = session.scalars(select(Project).where(Project.name == user)).one()
        for number, job_id in enumerate(ids):
            at = BEGAN + timedelta(seconds=number)
            fields = {
                "kind": "run",
                "state": "queued",
                "cpus": 1.0,
                "memory_mb": 100,
                "created_at": at,
                "queued_at": at,
            }
            session.add(Job(id=job_id, project_id=project.id, user_id=made.id, **{**fields, **more}))
    return ids


def reasons(database: Database) -> dict[str, str | None]:
    with database.reading() as session:
        return {job.id: job.waiting_for for job in session.scalars(select(Job))}


def test_a_user_with_many_runs_does_not_hide_those_of_others(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queued, "MOST", 120)
    many, few = queue(database, "many", 500), queue(database, "few", 3)
    with database.reading() as session:
        found = [run.id for run in queued_runs(session)]
    assert sorted(found) == sorted(many[:60] + few)


def test_among_many_users_each_has_some(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queued, "MOST", 8)
    for number in range(10):
        queue(database, f"u{number}", 30)
    with database.reading() as session:
        found = queued_runs(session)
    assert len(found) == 10 * 20 and len({run.user_id for run in found}) == 10


@pytest.mark.parametrize("seed", range(10))
def test_runs_that_have_to_wait_never_hide_one_that_can_start(
    database: Database, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Whatever makes the first ones wait: the machine, a project's quota, a larger run, a broken sandbox."""
    chance = Random(seed)
    monkeypatch.setattr(queued, "MOST", 1)
    monkeypatch.setattr(queued, "_LEAST", chance.choice([1, 3]))
    for number in range(6):
        for part in range(3):
            more = {"cpus": float(chance.choice([1, 2, 8, 64])), "gpus": chance.choice([0, 0, 1])}
            ids = queue(database, f"u{number}", 12, part=part, **more, preemptible=chance.random() < 0.3)
            sandbox = chance.choice(["good", "bad"])
            with database.writing() as session:
                session.execute(insert(RunRow), [run_row(session.get_one(Job, one), sandbox) for one in ids])
    with database.reading() as session:
        projects = session.scalars(select(Project.id)).all()
        everything = [Queued(*row, 0.0) for row in session.execute(select(*(getattr(Job, name) for name in FIELDS)))]
        read = queued_runs(session, by_sandbox=True)
        held = held_back(session, everything, {"bad": "it is broken"})
    quotas = {project: Quota(concurrent_runs=chance.choice([None, 0, 2])) for project in projects}
    world = World(Demand(8, 8000, chance.choice([0, 1])), chance.choice([1, 4]), now=100.0, projects=quotas)

    def starts(runs: list[Queued]) -> list[str]:
        return decide([run.as_waiting() for run in runs if run.id not in held], [], world).start

    first, all_ = starts(read), starts(everything)
    assert bool(first) == bool(all_)
    assert len(read) <= 6 * 3 * queued._LEAST
    assert not set(first) & held.keys()


def test_a_cancelled_run_is_the_first_and_needs_nothing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queued, "MOST", 20)
    ids = queue(database, "one", 50)
    with database.writing() as session:
        session.get_one(Job, ids[-1]).cancel = True
    with database.reading() as session:
        found = {run.id: run.as_waiting() for run in queued_runs(session)}
    assert found.keys() == {*ids[:19], ids[-1]}
    assert found[ids[-1]].demand == NOTHING and found[ids[-1]].priority > 100
    assert found[ids[0]].demand.cpus == 1.0 and found[ids[0]].since == BEGAN.timestamp()


def test_only_changed_reasons_are_written_and_turns_are_not(database: Database) -> None:
    ids = queue(database, "one", 1200)
    statements: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))

    def tell(told: dict[str, str]) -> int:
        with database.reading() as session:
            found = queued_runs(session)
        statements.clear()
        write_reasons(database, {run.id: run.waiting_for for run in found}, told)
        return sum(statement.startswith("UPDATE") for statement in statements)

    assert tell(dict.fromkeys(ids, TURN)) == 0
    assert tell({**dict.fromkeys(ids, TURN), ids[0]: "a GPU"}) == 1
    assert tell({**dict.fromkeys(ids, TURN), ids[0]: "a GPU"}) == 0
    assert reasons(database) == {**dict.fromkeys(ids, None), ids[0]: "a GPU"}
    assert tell(dict.fromkeys(ids, "Docker")) == 3, "in batches, and not all in one transaction"
    assert set(reasons(database).values()) == {"Docker"}
    tell(dict.fromkeys(ids, TURN))
    assert set(reasons(database).values()) == {None}


def test_runs_started_meanwhile_get_no_reason(database: Database) -> None:
    [one] = queue(database, "one", 1)
    with database.reading() as session:
        found = queued_runs(session)
    with database.writing() as session:
        session.get_one(Job, one).state = "started"
    write_reasons(database, {run.id: run.waiting_for for run in found}, {one: "a GPU"})
    assert reasons(database) == {one: None}
