"""What workers do, one module a kind of job: `work` in the worker, `begun` and `settle` in the server.

Only the server process writes the database; a worker only writes files, in its job's folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mleredux.plugin.artifact import RunStore
from mleredux.plugin.command import Catalogue, DataStore

from mleredux_server.settings import Settings

REQUEST_FILE = "request.json"
RESULT_FILE = "result.json"
LOCK_FILE = ".lock"
CANCEL_FILE = ".cancel"
ATTEMPT_FILE = ".attempt"
"""Holds the number of the attempt that was last taken up by a worker."""


@dataclass(frozen=True)
class WorkContext:
    """What a worker has for one job.

    Attributes:
        settings: The server's; without its database, which workers never open.
        folder: The job's own: a run's directory, or one in the state folder.
        request: What was asked, from `request.json`; empty for runs, whose directory says all.
        cancelled: Whether somebody asked to stop.
        attempt: 1 for the first worker that takes the job up.
    """

    settings: Settings
    catalogue: Catalogue
    store: RunStore
    data: DataStore
    job_id: str
    folder: Path
    request: dict[str, Any]
    cancelled: Callable[[], bool]
    attempt: int = 1
