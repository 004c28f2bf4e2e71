"""The queue as the dispatcher reads it: a bounded number of runs, and why they are waiting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import func, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from mleredux_server.database import Database, batches
from mleredux_server.database.tables import Job, RunRow
from mleredux_server.scheduler.decision import NOTHING, TURN, Demand, Waiting

MOST = 2000
"""Number of queued runs that are read, divided among groups of runs that can only start or wait together."""
_LEAST = 20
"""Minimum number of runs that are read from the front of each group."""
_CANCELLED_PRIORITY = 200


class Queued(NamedTuple):
    """A queued run. If a run only waits for its turn, `waiting_for` is None and need not be written."""

    id: str
    user_id: str
    project_id: str
    priority: int
    preemptible: bool
    cpus: float
    memory_mb: float
    gpus: float
    cancel: bool
    waiting_for: str | None
    since: float

    def as_waiting(self) -> Waiting:
        """Return the run as input for the decision; a cancelled run needs no resources, and is handled first."""
        demand = NOTHING if self.cancel else Demand(self.cpus, self.memory_mb, self.gpus)
        priority = _CANCELLED_PRIORITY if self.cancel else self.priority
        return Waiting(self.id, self.user_id, self.project_id, demand, self.since, priority, self.preemptible)


def queued_runs(session: Session, *, by_sandbox: bool = False) -> list[Queued]:
    """Return the first runs of each group; a group has the same user, project and demand.

    If the first run of a group can't start, no run of the group can, so runs that are not read are neither startable
    nor next.

    Args:
        by_sandbox: Whether to group by sandbox too, because some sandboxes do not work.
    """
    waits = (Job.state == "queued", Job.kind == "run")
    alike: tuple[InstrumentedAttribute[Any], ...] = (
        Job.user_id,
        Job.project_id,
        Job.preemptible,
        Job.cpus,
        Job.memory_mb,
        Job.gpus,
    )
    order = (Job.cancel.desc(), Job.priority.desc(), Job.queued_at, Job.id)
    queued = select().select_from(Job).where(*waits)
    if by_sandbox:
        queued, alike = queued.join(RunRow, RunRow.id == Job.id), (*alike, RunRow.sandbox)
    groups = session.scalar(select(func.count()).select_from(queued.add_columns(*alike).distinct().subquery()))
    if not groups:
        return []
    place = func.row_number().over(partition_by=alike, order_by=order).label("place")
    inner = queued.add_columns(Job.id.label("id"), place).subquery()
    since = func.coalesce(Job.queued_at, Job.created_at, type_=Job.created_at.type).label("since")
    columns = (*(getattr(Job, name) for name in Queued._fields if name != "since"), since)
    query = select(*columns).join(inner, inner.c.id == Job.id).where(inner.c.place <= max(_LEAST, MOST // groups))
    return [Queued(**{**row._asdict(), "since": row.since.timestamp()}) for row in session.execute(query)]


def held_back(session: Session, queued: Iterable[Queued], broken: Mapping[str, str]) -> dict[str, str]:
    """Return the reason for each run whose sandbox does not work.

    Args:
        broken: The reason, by sandbox.
    """
    ids = [run.id for run in queued if not run.cancel]
    held: dict[str, str] = {}
    for some in batches(ids):
        query = select(RunRow.id, RunRow.sandbox).where(RunRow.sandbox.in_(broken), RunRow.id.in_(some))
        held |= {run_id: broken[sandbox] for run_id, sandbox in session.execute(query)}
    return held


def write_reasons(
    database: Database, known: Mapping[str, str | None], reasons: Mapping[str, str | None], state: str = "queued"
) -> None:
    """Write changed reasons for waiting, grouped by reason, in batches that do not block other writers.

    Args:
        known: The reasons in the database, by run.
        reasons: The reasons now; runs without an entry are left alone.
        state: The state of the jobs; others are left alone.
    """
    changed: dict[str | None, list[str]] = {}
    for run_id in known.keys() & reasons.keys():
        why = None if reasons[run_id] == TURN else reasons[run_id]
        if why != known[run_id]:
            changed.setdefault(why, []).append(run_id)
    for why, ids in changed.items():
        for some in batches(ids):
            with database.writing() as session:
                session.execute(update(Job).where(Job.id.in_(some), Job.state == state).values(waiting_for=why))
