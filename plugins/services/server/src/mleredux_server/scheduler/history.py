"""Past use of the machine by each user, which decays: who used much lately waits for those who did not."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import delete, or_, select, update
from sqlalchemy.orm import Session

from mleredux_server.database import Database
from mleredux_server.database.tables import Job, Project, now
from mleredux_server.scheduler.decision import Demand
from mleredux_server.schemas.accounts import Quota

_EVERY = 30.0
_HALF_LIVES = 7
_DIGITS = 2
"""Differences of less than 1 % of the machine do not count: users take turns then."""


USED = "used"
"""Kind of the job of a deleted run, which is kept as long as what it used counts."""


def forget_job(session: Session, run_id: str, half_life: float) -> None:
    """Delete the job of a deleted run, once what it used no longer counts; and those for which this is so by now."""
    since = now() - timedelta(seconds=_HALF_LIVES * half_life)
    its, ended = Job.id == run_id, Job.state == "ended"
    counts = (Job.ended_at > since, Job.started_at.is_not(None))
    session.execute(update(Job).where(its, ended, *counts).values(kind=USED, disk_mb=0))
    session.execute(delete(Job).where(its, ended, Job.kind == "run"))
    session.execute(delete(Job).where(Job.kind == USED, Job.ended_at <= since))


class Use(NamedTuple):
    """A run that used the machine.

    Attributes:
        share: Its dominant share of the machine, divided by the weight of its project.
        begun, ended: In seconds.
    """

    user: str
    share: float
    begun: float
    ended: float


def decayed(uses: Iterable[Use], now: float, half_life: float) -> dict[str, float]:
    """Return the average share of each user, in which a moment counts half as much after each half-life.

    It is the integral of the share times 2^(-age / half-life), divided by that of a user with the whole machine.
    """
    rate = math.log(2) / half_life
    found: dict[str, float] = {}
    for use in uses:
        part = math.exp(-rate * max(0.0, now - use.ended)) - math.exp(-rate * max(0.0, now - use.begun))
        found[use.user] = found.get(use.user, 0.0) + use.share * part
    return {user: round(value, _DIGITS) for user, value in found.items()}


class History:
    """The decayed shares of all users, read from the jobs every half minute.

    Args:
        database: With the jobs.
        machine: Returns the whole of it.
        half_life: In seconds; 0: the past does not count.
    """

    def __init__(self, database: Database, machine: Callable[[], Demand], half_life: float) -> None:
        self._database, self._machine, self._half_life = database, machine, half_life
        self._until, self._known = 0.0, dict[str, float]()

    def shares(self) -> Mapping[str, float]:
        """Return the share of each user who has used something lately."""
        if self._half_life and time.monotonic() >= self._until:
            at = now()
            self._known = decayed(self._uses(at), at.timestamp(), self._half_life)
            self._until = time.monotonic() + _EVERY
        return self._known

    def _uses(self, at: datetime) -> list[Use]:
        since = at - timedelta(seconds=_HALF_LIVES * self._half_life)
        columns = (Job.user_id, Job.project_id, Job.cpus, Job.memory_mb, Job.gpus, Job.started_at, Job.ended_at)
        recent = or_(Job.ended_at > since, Job.state == "started")
        counts = (Job.kind.in_(("run", USED)), Job.started_at.is_not(None), ~Job.preemptible, recent)
        query = select(*columns).where(*counts)
        with self._database.reading() as session:
            rows = session.execute(query).all()
            projects = session.scalars(select(Project).where(Project.id.in_({row.project_id for row in rows}))).all()
        machine = self._machine()
        weights = {project.id: Quota.model_validate(project.quota).weight for project in projects}
        return [
            Use(
                user, _share(Demand(cpus, memory, gpus), machine) / weights[project], begun.timestamp(), end.timestamp()
            )
            for user, project, cpus, memory, gpus, begun, ended in rows
            if begun is not None and (end := ended or at)
        ]


def _share(demand: Demand, machine: Demand) -> float:
    return max((mine / whole for mine, whole in zip(demand, machine, strict=True) if whole > 0), default=0.0)
