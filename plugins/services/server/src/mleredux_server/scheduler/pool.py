"""Worker processes: starting them ahead of time, sending them jobs, detecting their exit."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog
from mleredux.plugin.command import Catalogue
from mleredux.plugin.executor import job_environment
from mleredux.plugin.host import process_birth

from mleredux_server.scheduler.tally import Tally
from mleredux_server.settings import Settings

_LOG = structlog.get_logger()
_SPARE = 2
_PAUSE = 1.0
"""Seconds until the next attempt after a worker could not be started."""
OTHER_LANES = ("grade", "build")
"""Types of jobs with one dedicated worker each, so that a grade does not wait for a run that takes a day."""


def workers_of(settings: Settings) -> int:
    """Return the maximum number of concurrent runs."""
    return settings.workers or max(2, os.cpu_count() or 1)


@dataclass
class WorkerProcess:
    """A worker as the server sees it.

    Attributes:
        job: Its current job; None while it is idle.
        birth: Identifies the process uniquely, together with the pid.
    """

    lane: str
    process: subprocess.Popen[bytes]
    birth: float | None
    job: str | None = None
    ready: bool = False
    exited: bool = False

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid


@dataclass(frozen=True)
class WorkerMessage:
    """A message from a worker: it finished its job, or exited (`done` is None)."""

    worker: WorkerProcess
    done: dict[str, Any] | None


class Pool:
    """The workers of a server.

    Args:
        settings: The server's settings.
        catalogue: The plugins that the workers load.
        wake: Called when there are messages.
        tally: The counters to update.
    """

    def __init__(self, settings: Settings, catalogue: Catalogue, wake: Callable[[], None], tally: Tally) -> None:
        self._settings, self._wake, self._tally = settings, wake, tally
        plain = settings.model_copy(update={"database": None, "oidc_secret": None})  # not for workers
        hello = {
            "settings": plain.model_dump(mode="json"),
            "load": [str(item) for item in catalogue.load],
            "block": [str(item) for item in catalogue.block],
        }
        self._hello = json.dumps(hello).encode() + b"\n"
        self._messages: queue.SimpleQueue[WorkerMessage] = queue.SimpleQueue()
        self._workers: list[WorkerProcess] = []
        self._start_at = 0.0
        self.size = {"run": workers_of(settings), **dict.fromkeys(OTHER_LANES, 1)}

    def warm(self, busy: int) -> None:
        """Start workers for runs ahead of time.

        Args:
            busy: Running runs, including those of workers of an earlier server.
        """
        free = sum(1 for worker in self._workers if worker.lane == "run" and not (worker.job or worker.exited))
        if time.monotonic() >= self._start_at:
            for _ in range(min(_SPARE, self.size["run"] - busy) - free):
                self._start("run")

    def assign(self, lane: str, record: Callable[[WorkerProcess], dict[str, Any] | None]) -> bool:
        """Assign a job to an idle worker, or to a new one.

        Args:
            lane: `run`, `grade` or `build`.
            record: Records the worker, and returns the job; None if the job need not be executed anymore.
        """
        free = [worker for worker in self._workers if worker.lane == lane and worker.job is None and not worker.exited]
        if not free and time.monotonic() < self._start_at:
            return False
        worker = max(free, key=lambda idle: idle.ready) if free else self._start(lane)
        job = record(worker)
        if job is None:
            return False
        worker.job = job["id"]
        self._count()
        assert worker.process.stdin is not None
        try:
            worker.process.stdin.write(json.dumps(job).encode() + b"\n")
            worker.process.stdin.flush()
        except OSError:
            pass  # the worker has just died: its exit is detected, and the job is retried
        return True

    def has(self, job_id: str) -> bool:
        """Return whether a worker of this server has the job and has not reported it as done."""
        return any(worker.job == job_id for worker in self._workers)

    def ready(self, job_id: str) -> bool:
        """Return whether the job's worker is known to have finished its imports."""
        return any(worker.job == job_id and worker.ready for worker in self._workers)

    def drop(self, job_id: str) -> None:
        """Forget the killed worker of a job, which may take a while to exit."""
        for worker in [worker for worker in self._workers if worker.job == job_id]:
            worker.exited = True
            self._workers.remove(worker)
        self._count()

    def poll(self) -> list[WorkerMessage]:
        """Return the messages since the last call."""
        messages: list[WorkerMessage] = []
        while True:
            try:
                message = self._messages.get_nowait()
            except queue.Empty:
                return messages
            messages.append(message)
            if message.done is None or message.done.get("last"):
                message.worker.exited = True
            if message.done is None and message.worker in self._workers:
                self._workers.remove(message.worker)
                if not message.worker.ready:
                    _LOG.error("a worker ended before it was ready; see workers.log", pid=message.worker.pid)
                    self._start_at = time.monotonic() + _PAUSE
                self._count()

    def free(self, worker: WorkerProcess) -> None:
        """Release a worker for the next job, after its last job was checked."""
        worker.job = None
        self._count()

    def close(self) -> None:
        """Send no more jobs: idle workers exit immediately, others after their current job."""
        for worker in self._workers:
            with contextlib.suppress(OSError):
                if worker.process.stdin is not None:
                    worker.process.stdin.close()

    def _count(self) -> None:
        busy = sum(1 for worker in self._workers if worker.job is not None)
        self._tally.workers = {"busy": busy, "idle": len(self._workers) - busy}

    def _start(self, lane: str) -> WorkerProcess:
        process = subprocess.Popen(
            [sys.executable, "-m", "mleredux_server.scheduler.worker", str(self._settings.runs_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=job_environment(),
            start_new_session=True,
        )
        worker = WorkerProcess(lane, process, process_birth(process.pid))
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.write(self._hello)
            process.stdin.flush()
        self._workers.append(worker)
        self._tally.workers_started += 1
        self._count()
        threading.Thread(target=self._listen, args=(worker,), daemon=True, name=f"worker-{process.pid}").start()
        return worker

    def _listen(self, worker: WorkerProcess) -> None:
        assert worker.process.stdout is not None
        for line in worker.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue  # a partial line, from a killed worker
            if "ready" in message:
                worker.ready = True
            else:
                self._messages.put(WorkerMessage(worker, message))
                self._wake()
        code = worker.process.wait()
        if code != 0:
            self._tally.workers_died += 1
            _LOG.warning("a worker ended", pid=worker.pid, code=code, job=worker.job)
        self._messages.put(WorkerMessage(worker, None))
        self._wake()
