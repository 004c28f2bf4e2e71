"""Finding what a caller may see; what they may not see is not there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mleredux_server.database.tables import Job, RunRow
from mleredux_server.problems import not_found
from mleredux_server.security import Caller
from mleredux_server.service import Service
from mleredux_server.streams.tail import Over

FINAL = frozenset({"done", "failed", "timed_out", "cancelled"})
"""Statuses of runs that nothing follows."""


@dataclass(frozen=True)
class SeenRun:
    """A run that the caller may see.

    Attributes:
        ended: Whether its work is over and settled; a run that is asked to go on is not.
    """

    id: str
    path: Path
    project: str
    status: str
    ended: bool


def run_of(service: Service, caller: Caller, run_id: str) -> SeenRun:
    """A run by its id.

    Raises:
        Problem: There is none that the caller may see.
    """
    with service.database.reading() as session:
        row, job = session.get(RunRow, run_id), session.get(Job, run_id)
    if row is None or job is None or not caller.sees(row.project_id):
        raise not_found("run", run_id)
    return SeenRun(row.id, service.store.path / row.id, row.project_id, row.status, job.state == "ended")


def run_is_over(service: Service, run_id: str) -> Over | None:
    """Whether nothing more will happen in a run: its job has ended, or it is gone."""
    with service.database.reading() as session:
        row, job = session.get(RunRow, run_id), session.get(Job, run_id)
    if row is None or job is None:
        return Over(None)
    return Over(row.status) if job.state == "ended" else None
