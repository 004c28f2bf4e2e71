"""Whether the service is ready."""

from __future__ import annotations

import shutil
import tempfile
import time

import anyio
from anyio.to_thread import run_sync
from pydantic import BaseModel
from sqlalchemy import false, update
from sqlalchemy.exc import SQLAlchemyError

from mleredux_server.database.tables import Job
from mleredux_server.service import Service

_FRESH_SECONDS = 1.0
_LONGEST_ROUND = 15.0


class Check(BaseModel):
    """One check.

    Attributes:
        message: The problem, or the current state.
    """

    name: str
    ok: bool
    message: str


class Readiness(BaseModel):
    """Whether all checks pass."""

    status: str
    checks: list[Check]


def space_shortage(service: Service) -> str | None:
    """Return the reason why no job may be started on the server's disks; None if they have enough free space."""
    least = max(1, service.settings.min_free_mb)
    for name, folder in (("runs", service.store.path), ("data", service.data.path)):
        try:
            free = shutil.disk_usage(folder).free // 2**20
        except OSError:  # it does not exist yet
            continue
        if free < least:
            return f"{free} MB is free in the {name} directory; less than {least}"
    return None


class Health:
    """Checks the service's dependencies; concurrent callers share one result, since they need no token.

    Args:
        service: The service to check.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._until, self._checks = 0.0, list[Check]()
        self._checking = anyio.Lock()

    async def ready(self) -> Readiness:
        """Return the state, at most one second old."""
        async with self._checking:
            if time.monotonic() >= self._until:
                self._checks = await run_sync(self.check_all)
                self._until = time.monotonic() + _FRESH_SECONDS
            checks = self._checks
        return Readiness(status="ok" if all(check.ok for check in checks) else "failing", checks=checks)

    def check_all(self) -> list[Check]:
        """Run all checks now."""
        checks = []
        for check in (self._database, self._disk, self._dispatcher, self._workers):
            name = check.__name__.removeprefix("_")
            try:
                checks.append(Check(name=name, ok=True, message=check()))
            except _Failing as failing:
                checks.append(Check(name=name, ok=False, message=str(failing)))
        return checks

    def _database(self) -> str:
        began = time.monotonic()
        try:
            with self._service.database.writing() as session:
                session.execute(update(Job).where(false()).values(waiting_for=None))
        except SQLAlchemyError as error:
            raise _Failing("The database can't be written now.") from error
        return f"A write took {(time.monotonic() - began) * 1000:.0f} ms."

    def _disk(self) -> str:
        folder = self._service.settings.state_dir
        try:
            free = shutil.disk_usage(folder).free // 2**20
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(4096))
        except OSError as error:
            raise _Failing(f"The runs directory is not writable: {error.strerror}.") from error
        if lacking := space_shortage(self._service):
            raise _Failing(f"{lacking}.")
        return f"{free} MB is free in the runs directory."

    def _dispatcher(self) -> str:
        scheduler = self._service.scheduler
        if scheduler is None:
            return "Not enabled."
        if not scheduler.alive():
            raise _Failing("The dispatcher is not running.")
        if failure := self._service.failure:
            raise _Failing(f"The dispatcher can't continue: {failure}")
        age = time.monotonic() - scheduler.tally.round_at
        if age > _LONGEST_ROUND:
            raise _Failing(f"The dispatcher has made no progress for {age:.0f} seconds.")
        return f"Last round {age:.1f} seconds ago."

    def _workers(self) -> str:
        scheduler = self._service.scheduler
        if scheduler is None:
            return "Not enabled."
        counts = scheduler.tally.workers
        if scheduler.tally.workers_died and not sum(counts.values()):  # all of them may belong to an earlier server
            raise _Failing("No worker process stays alive.")
        return f"{counts['busy']} busy, {counts['idle']} idle."


class _Failing(Exception):
    """Raised with a public description of the problem, without names of hosts, files or users."""
