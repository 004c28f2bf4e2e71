"""A worker: a process that receives jobs, one at a time, and executes them.

It is started by the server in its own session and outlives it: when the pipe of jobs closes, it finishes its current
job and exits. It never opens the database.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import IO, Any

import psutil
from mleredux.errors import MlereduxError, one_line
from mleredux.plugin.artifact import RunStore, State
from mleredux.plugin.command import Catalogue, DataStore
from mleredux.plugin.files import FileLock, write_atomically
from mleredux.plugin.host import Pipeline, provide_secrets, set_current
from mleredux_executor_nodes.shared import Lease

from mleredux_server.runs.uploaded import use_sources
from mleredux_server.scheduler.worklog import WorkLog
from mleredux_server.settings import Settings
from mleredux_server.work import ATTEMPT_FILE, CANCEL_FILE, LOCK_FILE, RESULT_FILE, WorkContext, read_request

MOST_JOBS = 64
"""Number of jobs after which a worker is replaced by a new one."""
MOST_GROWTH_MB = 512
"""Growth of a worker's memory after which the worker is replaced by a new one."""
LOG_FILE = "workers.log"


class Worker:
    """One worker process.

    Args:
        reader: The pipe of jobs: one JSON object per line, starting with `settings`, `load` and `block`.
        writer: The pipe of responses: `{"ready": pid}`, then `{"done": id, …}` for each job.
    """

    def __init__(self, reader: IO[bytes], writer: IO[bytes]) -> None:
        self._reader, self._writer = reader, writer
        self._idle = self._leaving = self._in_run = False
        hello = json.loads(reader.readline() or b"null")
        if hello is None:
            raise SystemExit(0)
        self.settings = Settings.model_validate(hello["settings"])
        self.catalogue = Catalogue(block=hello["block"], load=hello["load"])
        set_current(self.catalogue)
        self.store = RunStore(self.settings.runs_dir.resolve())
        self.data = DataStore(self.settings.data_dir)
        use_sources(self.settings)
        self.log = WorkLog(self.settings.state_dir / LOG_FILE)

    def serve(self) -> None:
        """Execute jobs until the pipe closes, or the maximum is reached."""
        self.log.open()
        # No SIG_IGN: the agents' processes would inherit it.
        signal.signal(signal.SIGINT, lambda _number, _frame: None)
        signal.signal(signal.SIGTERM, self._leave)
        signal.signal(signal.SIGUSR1, self._make_room)
        Pipeline(self.store, self.catalogue, self.data).warm_up()
        self.log.write("worker ready")
        self._send(ready=os.getpid())
        before = _memory_mb()
        for number in range(1, MOST_JOBS + 1):
            line = self._next()
            if not line:
                break
            job = json.loads(line)
            self.log.open()
            done = self._do(job)
            grown = _memory_mb() - before
            last = self._leaving or number == MOST_JOBS or grown > MOST_GROWTH_MB
            self._send(done=job["id"], last=last, **done)
            if last:
                break
        self.log.write("worker leaves", grown_mb=round(_memory_mb() - before))

    def _next(self) -> bytes:
        if self._leaving:
            return b""
        self._idle = True
        line = self._reader.readline()
        self._idle = False
        return line

    def _do(self, job: dict[str, Any]) -> dict[str, Any]:
        facts = {"job": job["id"], "kind": job["kind"], "attempt": job["attempt"]}
        try:
            (Path(job["folder"]) / ATTEMPT_FILE).write_text(str(job["attempt"]))
            self.log.write("job started", **facts)  # after the mark, so readers can count it
            with self._lease(job) as lease, provide_secrets(job["secrets"], job["earlier"]):
                result = self._run(job, lease) if job["kind"] == "run" else self._other(job, lease)
        except MlereduxError as error:
            self.log.write("job refused", "warning", reason=str(error), **facts)
            return {"error": str(error)}
        except Exception as error:  # a worker survives any plugin error; the server checks the job
            self.log.write("job broke", "error", reason=repr(error), traceback=traceback.format_exc(), **facts)
            return {"error": one_line(error)}
        self.log.write("job done", **facts)
        return result

    def _lease(self, job: dict[str, Any]) -> Lease:
        folder, settings = Path(job["folder"]), self.settings
        run = self.store.get(job["id"]) if job["kind"] == "run" else None

        def patience() -> float:
            """Return the seconds without progress that are allowed: more for builds, which may wait for an engine for a
            long time."""
            building = job["kind"] == "build" or (run is not None and run.state is State.BUILDING)
            return settings.stage_limit if building else settings.stall_limit

        return Lease(folder, job["fence"], seconds=settings.lease, patience=patience)

    def _run(self, job: dict[str, Any], lease: Lease) -> dict[str, Any]:
        context = self._context(job, {}, lease)
        work = import_module("mleredux_server.work.run").work
        self._in_run = True
        try:
            result: dict[str, Any] = work(context)
        finally:
            self._in_run = False
        return result

    def _other(self, job: dict[str, Any], lease: Lease) -> dict[str, Any]:
        """Execute a job whose result is a file, unless the file exists."""
        folder = Path(job["folder"])
        with FileLock(folder / LOCK_FILE).attempt() as acquired:
            if acquired and not (folder / RESULT_FILE).exists():
                answer = self._answer(job, folder, lease)
                lease.check()
                write_atomically(folder / RESULT_FILE, json.dumps(answer))
        return {}

    def _answer(self, job: dict[str, Any], folder: Path, lease: Lease) -> dict[str, Any]:
        try:
            request = read_request(folder)
            kind = import_module(f"mleredux_server.work.{job['kind']}")
            return {"result": kind.work(self._context(job, request, lease)), "error": None}
        except MlereduxError as error:
            return {"result": None, "error": str(error)}
        except Exception as error:  # any error is the job's result, and is logged
            self.log.write("job broke", "error", job=job["id"], traceback=traceback.format_exc())
            return {"result": None, "error": f"Internal error ({type(error).__name__})."}

    def _context(self, job: dict[str, Any], request: dict[str, Any], lease: Lease) -> WorkContext:
        folder = Path(job["folder"])
        return WorkContext(
            settings=self.settings,
            catalogue=self.catalogue,
            store=self.store,
            data=self.data,
            job_id=job["id"],
            folder=folder,
            request=request,
            lease=lease,
            cancelled=lambda: (folder / CANCEL_FILE).exists() or lease.lost(),
            attempt=job["attempt"],
        )

    def _leave(self, _number: int, _frame: FrameType | None) -> None:
        """Handle SIGTERM: exit now if idle, else after the job."""
        self._leaving = True
        if self._idle:
            raise SystemExit(0)

    def _make_room(self, _number: int, _frame: FrameType | None) -> None:
        """Handle SIGUSR1: stop the agent and leave the run as it is, to be resumed when there is room again."""
        if self._in_run:
            self._in_run = False
            raise SystemExit(0)

    def _send(self, **facts: Any) -> None:
        try:
            self._writer.write(json.dumps(facts).encode() + b"\n")
            self._writer.flush()
        except OSError:  # the server has exited; the result is in the job's folder
            self._leaving = True


def _memory_mb() -> float:
    memory: float = psutil.Process().memory_info().rss / 2**20
    return memory


def main() -> None:
    """Run a worker, with its pipes detached from standard input and output, so that no plugin uses them by mistake."""
    reader, writer = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    Worker(reader, writer).serve()


if __name__ == "__main__":
    main()
