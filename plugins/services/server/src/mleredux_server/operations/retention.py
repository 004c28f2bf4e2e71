"""How long ended runs are kept: rules by age and project; pinned runs stay."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from mleredux.errors import MlereduxError, one_line
from mleredux.plugin.command import read_duration
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from mleredux_server.database.tables import Job, Project, RunRow, now
from mleredux_server.protocol.problems import Problem
from mleredux_server.scheduler.actions import delete_run
from mleredux_server.service import Service

_LOG = structlog.get_logger()
_EVERY = 3600.0
FOREVER = "forever"


@dataclass(frozen=True)
class Rule:
    """How long the runs of a project are kept.

    Attributes:
        project: Name of the project; None: all projects without their own rule.
        seconds: Seconds after their end; None: forever.
    """

    project: str | None
    seconds: float | None


@dataclass(frozen=True)
class Expired:
    """A run that has exceeded its retention rule."""

    id: str
    project: str
    ended_at: datetime
    disk_mb: int


def read_rules(words: Sequence[str]) -> tuple[Rule, ...]:
    """Parse rules such as `90d`, `PROJECT=30d`, `PROJECT=forever`.

    Raises:
        MlereduxError: A rule is not valid.
    """
    rules = []
    for word in words:
        project, equals, text = word.rpartition("=")
        try:
            rules.append(Rule(project if equals else None, None if text == FOREVER else read_duration(text)))
        except ValueError as error:
            raise MlereduxError(str(error), hint="Use 90d, PROJECT=30d, or PROJECT=forever.") from None
    return tuple(rules)


def expired(session: Session, rules: Sequence[Rule]) -> list[Expired]:
    """Return ended runs that have exceeded their retention rules, oldest first; pinned runs are kept.

    Raises:
        MlereduxError: A rule names a project that does not exist.
    """
    general = next((rule.seconds for rule in rules if rule.project is None), None)
    projects = {row.id: row.name for row in session.scalars(select(Project))}
    own = {rule.project: rule.seconds for rule in rules if rule.project is not None}
    if unknown := sorted(set(own) - set(projects.values())):
        raise MlereduxError(f"There is no project {unknown[0]!r}.", hint="See `mleredux server project list`.")
    runs: list[Expired] = []
    for project_id, name in projects.items():
        seconds = own.get(name, general)
        if seconds is None:
            continue
        query = select(RunRow.id, Job.ended_at, Job.disk_mb).join(Job, Job.id == RunRow.id)
        old = (Job.state == "ended", Job.ended_at < now() - timedelta(seconds=seconds), RunRow.pinned.is_(False))
        for run_id, ended_at, disk_mb in session.execute(query.where(RunRow.project_id == project_id, *old)):
            if ended_at is not None:
                runs.append(Expired(run_id, name, ended_at, disk_mb))
    return sorted(runs, key=lambda run: (run.ended_at, run.id))


def remove(service: Service, rules: Sequence[Rule]) -> list[Expired]:
    """Delete the expired runs; return them."""
    with service.database.reading() as session:
        runs = expired(session, rules)
    removed = []
    for run in runs:
        try:
            delete_run(service, None, run.id)
            removed.append(run)
        except (Problem, MlereduxError, SQLAlchemyError, OSError) as error:
            _LOG.warning("an expired run can't be deleted", run=run.id, reason=one_line(error))
    return removed


class Retention:
    """The thread that deletes expired runs, every hour.

    Args:
        service: The service.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stopping = threading.Event()

    def start(self) -> None:
        """Start the thread, if there are rules."""
        if self._service.settings.retain:
            threading.Thread(target=self._run, name="retention", daemon=True).start()

    def stop(self) -> None:
        """Stop it."""
        self._stopping.set()

    def _run(self) -> None:
        rules = read_rules(self._service.settings.retain)
        while not self._stopping.wait(min(_EVERY, 60.0)):
            try:
                if removed := remove(self._service, rules):
                    _LOG.info("expired runs were deleted", runs=len(removed))
            except Exception as error:  # the next hour tries again
                _LOG.error("expired runs can't be deleted", reason=one_line(error))
            self._stopping.wait(_EVERY)
