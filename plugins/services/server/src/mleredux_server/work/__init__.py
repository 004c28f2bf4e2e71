"""The work of each type of job, one module per type: `work` is for the worker; `TABLE`, `BUSY` and `settle` are for the
server.

Only the server process writes to the database; a worker only writes files in its job's folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from mleredux.plugin.artifact import RunStore
from mleredux.plugin.command import Catalogue, DataStore
from mleredux_executor_nodes.shared import Lease
from sqlalchemy.orm import Session

from mleredux_server.database.tables import Job, now
from mleredux_server.settings import Settings

REQUEST_FILE = "request.json"
RESULT_FILE = "result.json"
LOCK_FILE = ".lock"
CANCEL_FILE = ".cancel"
ATTEMPT_FILE = ".attempt"
"""Stores the number of the latest attempt that a worker started."""


def read_request(folder: Path) -> dict[str, Any]:
    """Return the request for a job other than a run.

    Raises:
        OSError, ValueError: It can't be read.
    """
    request: dict[str, Any] = json.loads((folder / REQUEST_FILE).read_bytes())
    return request


def begin(session: Session, job: Job) -> None:
    """Record in the table of a job other than a run that it has started."""
    kind = import_module(f"{__name__}.{job.kind}")
    if (row := session.get(kind.TABLE, job.id)) is not None:
        row.status = kind.BUSY


def settle(session: Session, job: Job, result: dict[str, Any] | None, error: str | None) -> None:
    """Record the outcome of a job other than a run in its table."""
    kind = import_module(f"{__name__}.{job.kind}")
    if (row := session.get(kind.TABLE, job.id)) is None:
        return
    row.ended_at = now()
    if result is None:
        row.status, row.message = "failed", error or kind.FAILED
    else:
        kind.settle(row, result)


@dataclass(frozen=True)
class WorkContext:
    """A worker's input for one job.

    Attributes:
        settings: The server's settings, without its database, which workers never open.
        folder: The job's folder: a run's directory, or one in the state folder.
        request: The content of `request.json`; empty for runs, whose directory contains everything.
        lease: The worker's lease on the folder.
        cancelled: Returns whether a user requested cancellation, or the lease is lost.
        attempt: 1 for the first worker that starts the job.
    """

    settings: Settings
    catalogue: Catalogue
    store: RunStore
    data: DataStore
    job_id: str
    folder: Path
    request: dict[str, Any]
    lease: Lease
    cancelled: Callable[[], bool]
    attempt: int = 1
