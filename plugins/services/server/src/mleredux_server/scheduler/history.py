"""Past use of the machine by each user, which decays: users with much recent use wait for those with little."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import delete, select, tuple_, update
from sqlalchemy.orm import Session

from mleredux_server.database import Database
from mleredux_server.database.tables import Job, Project, now
from mleredux_server.scheduler.decision import Demand
from mleredux_server.schemas.accounts import Quota

_EVERY = 30.0
_HALF_LIVES = 7
_DIGITS = 2
"""Shares are rounded to this many digits: with differences of less than 1 % of the machine, users take turns."""
_LATE = timedelta(minutes=2)
"""Maximum delay in seconds until an ended job is recorded; jobs that ended later may be recorded first."""
_AT_ONCE = 500
_LEAST = 1e-6

USED = "used"
"""Kind of the job of a deleted run, which is kept as long as its usage counts."""
_USES = select(
    Job.id, Job.ended_at, Job.started_at, Job.user_id, Job.project_id, Job.cpus, Job.memory_mb, Job.gpus
).where(Job.kind.in_(("run", USED)), Job.started_at.is_not(None), ~Job.preemptible)


def forget_job(session: Session, run_id: str, half_life: float) -> None:
    """Delete the job of a deleted run once its usage no longer counts, and all other jobs for which that is now the
    case."""
    since = now() - timedelta(seconds=_HALF_LIVES * half_life)
    its, ended = Job.id == run_id, Job.state == "ended"
    counts = (Job.ended_at > since, Job.started_at.is_not(None))
    session.execute(update(Job).where(its, ended, *counts).values(kind=USED, disk_mb=0))
    session.execute(delete(Job).where(its, ended, Job.kind == "run"))
    session.execute(delete(Job).where(Job.kind == USED, Job.ended_at <= since))


class Use(NamedTuple):
    """Runs of a user in a project with the same demand, whose usage is added up."""

    user: str
    project: str
    demand: Demand


def decayed(begun: float, ended: float, now: float, half_life: float) -> float:
    """Return the weight of a time span now; the weight of a moment halves with each half-life.

    The weight is the integral of 2^(-age / half-life) over the span, divided by the integral over all of the past.
    """
    rate = math.log(2) / half_life
    return math.exp(-rate * max(0.0, now - ended)) - math.exp(-rate * max(0.0, now - begun))


class History:
    """The decayed shares of all users; newly ended jobs are added every half minute.

    After a start, the past is read backward, a few jobs at a time, so that nothing waits for it.

    Args:
        database: The database with the jobs.
        machine: Returns the machine's total resources.
        half_life: Half-life in seconds; 0: the past does not count.
    """

    def __init__(self, database: Database, machine: Callable[[], Demand], half_life: float) -> None:
        self._database, self._machine, self._half_life = database, machine, half_life
        self._until, self._known = 0.0, dict[str, float]()
        self._begin(now())

    def shares(self) -> Mapping[str, float]:
        """Return the share of each user with recent usage."""
        if self._half_life and time.monotonic() >= self._until:
            self._known = self._shares(now())
            self._until = time.monotonic() + (_EVERY if self._older is None else 0.0)
        return self._known

    def _begin(self, at: datetime) -> None:
        self._at, self._counted = at, set[tuple[str, datetime | None]]()
        self._uses: dict[Use, float] = {}
        self._older: tuple[datetime | None, str] | None = (at - _LATE, "")

    def _shares(self, at: datetime) -> dict[str, float]:
        if at < self._at:  # the clock was set back
            self._begin(at)
        with self._database.reading() as session:
            new = session.execute(_USES.where(Job.ended_at >= self._at - _LATE)).all()
            running = session.execute(_USES.where(Job.state == "started")).all()
            old: Sequence[Any] = ()
            if self._older is not None:
                earlier = tuple_(Job.ended_at, Job.id) < self._older
                last_first = (Job.ended_at.desc(), Job.id.desc())
                old = session.execute(_USES.where(earlier).order_by(*last_first).limit(_AT_ONCE)).all()
            factor = decayed(-math.inf, self._at.timestamp(), at.timestamp(), self._half_life)
            kept = {use: value * factor for use, value in self._uses.items() if value > _LEAST}
            self._uses = self._with(kept, [*(row for row in new if row[:2] not in self._counted), *old], at)
            total = self._with(self._uses, running, at)
            projects = session.scalars(select(Project).where(Project.id.in_({use.project for use in total}))).all()
        self._at, self._counted = at, {(row.id, row.ended_at) for row in new}
        far = at - timedelta(seconds=_HALF_LIVES * self._half_life)
        self._older = (old[-1].ended_at, old[-1].id) if old and old[-1].ended_at > far else None
        weights = {project.id: Quota.model_validate(project.quota).weight for project in projects}
        machine, shares = self._machine(), dict[str, float]()
        for use, value in total.items():
            share = value * use.demand.share_of(machine) / weights.get(use.project, 1.0)
            shares[use.user] = shares.get(use.user, 0.0) + share
        return {user: round(value, _DIGITS) for user, value in shares.items()}

    def _with(self, uses: Mapping[Use, float], rows: Iterable[Any], at: datetime) -> dict[Use, float]:
        """Return the usage, including that of additional jobs."""
        total = dict(uses)
        for row in rows:
            use = Use(row.user_id, row.project_id, Demand(row.cpus, row.memory_mb, row.gpus))
            span = (row.started_at.timestamp(), (row.ended_at or at).timestamp())
            total[use] = total.get(use, 0.0) + decayed(*span, at.timestamp(), self._half_life)
        return total
