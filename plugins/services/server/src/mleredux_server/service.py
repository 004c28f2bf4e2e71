"""The shared state of a running service."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from fastapi import Depends, Request
from mleredux.plugin.artifact import RunStore
from mleredux.plugin.command import Catalogue, DataStore
from mleredux_executor_nodes.shared import StoredRuns

from mleredux_server.accounts.vault import Vault
from mleredux_server.database import Database
from mleredux_server.protocol.idempotency import Claim
from mleredux_server.scheduler.forecast import Forecasts
from mleredux_server.settings import Settings

if TYPE_CHECKING:
    from mleredux_server.operations.traces import Tracing
    from mleredux_server.scheduler.dispatcher import Dispatcher


@dataclass
class Service:
    """A running service.

    Attributes:
        wake: Set when there may be something to schedule.
        scheduler: Executes jobs; without one they stay queued.
        failure: Why the scheduler can't start or follow jobs now, as a sentence; None if it can.
        tracing: Sends traces; None if they are not enabled.
        cancelling: Ids of runs that a request is cancelling, and that the scheduler leaves alone.
        left: Ids of jobs that failed requests may have left incomplete, each with its request's claim; the scheduler
            removes them.
    """

    settings: Settings
    database: Database
    catalogue: Catalogue
    store: RunStore
    data: DataStore
    wake: threading.Event = field(default_factory=threading.Event)
    scheduler: Dispatcher | None = None
    failure: str | None = None
    tracing: Tracing | None = None
    cancelling: set[str] = field(default_factory=set)
    left: list[tuple[list[str], Claim]] = field(default_factory=list)

    @cached_property
    def forecasts(self) -> Forecasts:
        """The forecasts of when queued runs will start."""
        return Forecasts(self.database)

    @cached_property
    def vault(self) -> Vault:
        """The encryption of the secrets of users and projects."""
        return Vault()

    @cached_property
    def stored_runs(self) -> StoredRuns | None:
        """The runs in the object store, for runs whose directories are no longer on this machine; None without a
        store."""
        url = self.settings.store
        return StoredRuns(self.catalogue, url, self.settings.state_dir / "stored-runs") if url is not None else None

    def ended_run(self, run_id: str) -> Path:
        """Return the directory of an ended run, for reading; if it is not on this machine, a copy without large files
        of its agent.

        Raises:
            NotFound: The object store does not have it either.
            StoreError: The object store does not respond, or an object is damaged or missing.
        """
        path = self.store.path / run_id
        return path if self.stored_runs is None or path.is_dir() else self.stored_runs.folder(run_id)

    def job_dir(self, kind: str, job_id: str) -> Path:
        """Return the folder of a job: a run's own directory, or one in the state folder."""
        if kind == "run":
            return self.store.path / job_id
        return self.settings.state_dir / f"{kind}s" / job_id


def service_of(request: Request) -> Service:
    """Return the service that handles a request."""
    return cast("Service", request.app.state.service)


async def _current(request: Request) -> Service:
    return service_of(request)


Current = Annotated[Service, Depends(_current)]
"""The service, as a parameter of a route."""
