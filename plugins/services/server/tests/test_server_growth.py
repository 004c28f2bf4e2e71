"""What the scheduler does again and again costs the same, however many runs there have ever been."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mleredux_server.database import Database
from mleredux_server.database.tables import Job, Project, RunRow, User, now
from mleredux_server.scheduler.decision import Demand
from mleredux_server.scheduler.history import History
from mleredux_server.scheduler.jobs import Jobs
from sqlalchemy import event, insert, update

DAY = 86_400.0


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(f"sqlite:///{tmp_path / 'service.sqlite'}")
    opened.migrate()
    with opened.writing() as session:
        session.execute(insert(User), [{"id": "u", "name": "u"}])
        session.execute(insert(Project), [{"id": "p", "name": "p", "quota": {}}])
    yield opened
    opened.close()


def add_ended(database: Database, first: int, count: int, seconds: float = 30.0) -> None:
    """Add runs that have ended, each some seconds before the last one."""
    jobs, rows = [], []
    for number in range(first, first + count):
        ended = now() - timedelta(seconds=seconds * (number + 1))
        both = {"id": f"r{number:06d}", "project_id": "p", "user_id": "u", "created_at": ended - timedelta(hours=1)}
        times = {"started_at": ended - timedelta(minutes=10), "ended_at": ended}
        jobs.append({**both, **times, "kind": "run", "state": "ended", "cpus": 1.0, "memory_mb": 100, "gpus": 0})
        words = {"task": "t", "agent": "a", "sandbox": "process", "network": "none", "status": "done", "seed": 0}
        empty: dict[str, Any] = {name: {} for name in ("limits", "options", "labels", "request")}
        rows.append({**both, **times, **words, **empty, "log_bytes": 10})
    with database.writing() as session:
        session.execute(insert(Job), jobs)
        session.execute(insert(RunRow), rows)


class Steps:
    """Counts the instructions of SQLite's virtual machine, in tens: a cost that does not depend on the machine."""

    def __init__(self, database: Database) -> None:
        self.count = 0
        event.listen(database.engine, "checkout", self._watch)

    def _watch(self, connection: Any, *_: object) -> None:
        connection.set_progress_handler(self._step, 10)

    def _step(self) -> int:
        self.count += 1
        return 0

    def of(self, action: Any) -> int:
        self.count = 0
        action()
        return self.count


def test_following_and_history_do_not_grow_with_the_number_of_runs(database: Database) -> None:
    def cost() -> tuple[int, int]:
        jobs = Jobs(SimpleNamespace(database=database, job_dir=lambda *_: Path("none")), None, None)  # type: ignore[arg-type]
        history = History(database, lambda: Demand(8, 0, 0), DAY)
        return steps.of(jobs.follow_foreign), steps.of(history.shares)

    add_ended(database, 0, 3000)
    steps = Steps(database)
    few = cost()
    add_ended(database, 3000, 20_000)
    many = cost()
    assert few[0] > 0 and few[1] > 0
    assert many[0] < 1.5 * few[0] and many[1] < 1.5 * few[1], (few, many)


def test_the_past_is_the_same_whether_it_was_read_at_once_or_as_it_happened(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def settled(history: History) -> float:
        for _ in range(100):
            history._until = 0.0
            shares = history.shares()
        return shares["u"]

    add_ended(database, 0, 700, seconds=600.0)
    history = History(database, lambda: Demand(8, 0, 0), DAY)
    first = settled(history)
    assert first == pytest.approx(0.125, abs=0.02), "one of eight CPUs, always"
    add_ended(database, 1000, 1, seconds=0.01)  # it has just ended
    with database.writing() as session:
        long = {"started_at": now() - timedelta(days=1), "cpus": 8.0}
        session.execute(update(Job).where(Job.id == "r001000").values(**long))
    assert settled(history) == pytest.approx(first + 0.5, abs=0.02)
    assert settled(History(database, lambda: Demand(8, 0, 0), DAY)) == pytest.approx(settled(history), abs=0.011)
    monkeypatch.setattr("mleredux_server.scheduler.history.now", lambda: now() - timedelta(hours=2))
    assert settled(history) > 0.3, "after the clock was set back"


def test_runs_from_before_a_migration_are_all_found(database: Database) -> None:
    add_ended(database, 0, 2500)
    unread = {"r000007", "r001500", "r002499"}
    with database.writing() as session:
        session.execute(update(RunRow).where(RunRow.id.in_(unread)).values(log_bytes=-1))
    jobs = Jobs(SimpleNamespace(database=database), None, None)  # type: ignore[arg-type]
    found = [run_id for _ in range(5) for run_id in jobs._unread()]
    assert sorted(found) == sorted(unread)
