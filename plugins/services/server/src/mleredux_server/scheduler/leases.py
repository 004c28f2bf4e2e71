"""The server's own deadlines for active jobs: a worker that misses one is killed, and its later writes are refused."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time

import structlog
from mleredux.models.formats import plain
from mleredux_executor_nodes.shared import read_lease, revoke_lease

from mleredux_server.scheduler.jobs import Started
from mleredux_server.scheduler.tally import Tally
from mleredux_server.service import Service
from mleredux_server.work import CANCEL_FILE

_LOG = structlog.get_logger()
CANCEL_SECONDS = 20.0
"""Seconds that a worker has to end a cancelled run on its own, with its artifacts."""
_START_SECONDS = 180.0
"""Seconds that a newly started worker has for its imports."""
_LONGEST_INTERVAL = 2.0
"""Maximum seconds that count between two checks: if the server itself was suspended, its workers may have been too."""
_DEATH_SECONDS = 3.0


class Leases:
    """Checks the leases and deadlines of running jobs, in the dispatcher's thread."""

    def __init__(self, service: Service, tally: Tally) -> None:
        self._service, self._tally = service, tally

    def overdue(self, job: Started, *, starting: bool) -> tuple[str, str] | None:
        """Check a job.

        Args:
            job: The job.
            starting: Whether its worker may still be importing its modules.

        Returns:
            The reason to kill its worker (one of `REASONS`) with a sentence; None if it may continue.
        """
        folder, settings = self._service.job_dir(job.kind, job.id), self._service.settings
        now = time.monotonic()
        passed, job.read_at = min(now - job.read_at, _LONGEST_INTERVAL), now
        lease = read_lease(folder)
        if lease != job.lease:
            job.lease, job.silent = lease, 0.0
            if lease is not None and job.pid is None and lease.get("host") == socket.gethostname():
                job.pid, job.birth = lease.get("pid"), lease.get("birth")  # started by a server whose database was lost
        else:
            job.silent += passed
        if job.stage != job.timed_stage:
            job.timed_stage, job.in_stage = job.stage, 0.0
        job.in_stage += passed
        with contextlib.suppress(OSError):
            if time.time() - (folder / CANCEL_FILE).stat().st_mtime > CANCEL_SECONDS:
                return "cancel", f"It did not end within {plain(CANCEL_SECONDS)} seconds after it was cancelled."
        if job.leaving_for is not None:
            job.leaving_for += passed
            if job.leaving_for > CANCEL_SECONDS:
                return "preemption", f"It did not make room for another run within {plain(CANCEL_SECONDS)} seconds."
        if job.silent > (max(_START_SECONDS, settings.lease) if starting else settings.lease):
            return "lease", f"It did not renew its lease for {job.silent:.0f} seconds."
        if job.in_stage > (limit := job.stage[1] or settings.stage_limit):
            return "deadline", f"It exceeded the limit of {plain(limit)} seconds in stage {job.stage[0]}."
        return None

    def preempt(self, job: Started | None) -> None:
        """Stop a run to make room for another one; the stopped run is queued again."""
        if job is not None and not job.leaving and job.worker_lives and job.pid is not None:
            _LOG.info("stopping a run to make room", job=job.id)
            job.leaving_for = 0.0
            with contextlib.suppress(ProcessLookupError):
                os.kill(job.pid, signal.SIGUSR1)

    def revoke(self, job: Started, reason: str, message: str) -> None:
        """Kill a job's worker, and refuse its later writes in case it survives.

        Raises:
            OSError: The job's folder can't be written.
        """
        _LOG.error("killing a worker", job=job.id, kind=job.kind, pid=job.pid, reason=message)
        until = time.monotonic() + _DEATH_SECONDS
        while job.worker_lives and job.pid is not None and time.monotonic() < until:
            with contextlib.suppress(ProcessLookupError):
                os.kill(job.pid, signal.SIGKILL)
            time.sleep(0.02)
        folder = self._service.job_dir(job.kind, job.id)
        if folder.is_dir():
            revoke_lease(folder)
        job.lost, job.outcome = message, {}
        self._tally.taken_away[job.kind, reason] += 1
