"""The server thread that assigns jobs to workers and follows them."""

from __future__ import annotations

import contextlib
import threading
import time

import structlog
from mleredux.errors import MlereduxError
from mleredux.plugin.host import Machine, Slots
from mleredux_executor_nodes.shared import calm_seconds, new_fence
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from mleredux_server.accounts.passed_secrets import keep_values
from mleredux_server.accounts.secrets import secrets_of
from mleredux_server.database.tables import Job, Project, RunRow, now
from mleredux_server.operations.health import space_shortage
from mleredux_server.protocol.problems import of_error
from mleredux_server.runs.creation import remove_partial
from mleredux_server.scheduler.backlog import held_back, queued_runs, write_reasons
from mleredux_server.scheduler.decision import NOTHING, Demand, Running, World, decide
from mleredux_server.scheduler.forecast import Input
from mleredux_server.scheduler.history import History
from mleredux_server.scheduler.jobs import Jobs, Started
from mleredux_server.scheduler.leases import Leases
from mleredux_server.scheduler.pool import OTHER_LANES, Pool, WorkerProcess
from mleredux_server.scheduler.remote import Remote
from mleredux_server.scheduler.sandbox_health import BrokenSandboxes
from mleredux_server.scheduler.startup import recover, sweep
from mleredux_server.scheduler.tally import Tally
from mleredux_server.schemas.accounts import Quota
from mleredux_server.service import Service
from mleredux_server.work import begin, read_request

_LOG = structlog.get_logger()
_TICK = 0.5
_POLL_SECONDS = 5.0
"""Seconds between reads of the queue if there is no notification, since other programs free slots too."""
_SWEEP_EVERY, _SWEEP_AGAIN = 600.0, 10.0
"""Seconds between two clean-ups, and until the next if one failed."""
_REST, _LONGEST_REST = 3.0, 1.0
"""After a round, the dispatcher sleeps for the round's duration times this factor, up to a maximum: even with a long
queue, most of the process's time is available for responses."""


class Dispatcher:
    """Assigns queued jobs to workers and follows those that are running.

    Args:
        service: The service; its `wake` is set when there may be something to do.

    Attributes:
        tally: Counters of its work.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self.tally = Tally()
        self._stopping = threading.Event()
        self._broken = BrokenSandboxes(service, self._stopping)
        self._jobs = Jobs(service, self.tally, self._broken.suspect)
        self._leases = Leases(service, self.tally)
        self._pool = Pool(service.settings, service.catalogue, service.wake.set, self.tally)
        self._remote = Remote(service, service.wake.set) if service.settings.executor != "local" else None
        self._slots = Slots(service.store.path)
        self._machine = Demand(self._slots.has.cpus, self._slots.has.memory_mb, len(self._slots.has.gpus))
        self._history = History(service.database, self._whole, service.settings.half_life)
        self._served: dict[str, float] = {}
        self._not_before: dict[str, float] = {}
        self._thread = threading.Thread(target=self._run, name="dispatcher", daemon=True)
        self._poll_at = self._scan_at = 0.0

    def start(self) -> None:
        """Compare the database with the disk, then start.

        Raises:
            MlereduxError: The ledger of slots is damaged.
            OperationalError: The database does not respond.
        """
        self._jobs.started = recover(self._service)
        if self._remote is None:
            self._pool.warm(len(self._jobs.started))
        else:
            for job in self._jobs.started.values():
                if job.kind == "run":
                    self._remote.submit(job.id)
            self._remote.start()
        self._thread.start()
        threading.Thread(target=self._sweep, name="sweeper", daemon=True).start()

    def stop(self) -> None:
        """Stop assigning jobs; workers finish their current jobs, which the next server follows."""
        self._stopping.set()
        self._service.wake.set()
        if self._thread.is_alive():
            self._thread.join(10)
        self._pool.close()
        if self._remote is not None:
            self._remote.close()

    def alive(self) -> bool:
        """Return whether the thread is alive."""
        return self._thread.is_alive()

    def largest(self) -> Machine | None:
        """Return the largest machine that a run can use; None if it is this machine."""
        return self._remote.largest() if self._remote is not None else None

    def _sweep(self) -> None:
        """Clean up again and again: a run may end while its sandbox, which has its container, does not respond."""
        while not self._stopping.is_set():
            swept = False
            try:
                swept = sweep(self._service)
            except Exception as error:  # a database that does not respond
                _LOG.error("the clean-up failed and will be retried", exc_info=error)
            self._stopping.wait(_SWEEP_EVERY if swept else _SWEEP_AGAIN)

    def _run(self) -> None:
        while not self._stopping.is_set():
            woken = self._service.wake.wait(_TICK)
            self._service.wake.clear()
            if self._stopping.is_set():
                return
            try:
                began = time.monotonic()
                self._tick(woken)
                self.tally.round_at, self._service.failure = time.monotonic(), None
                self._stopping.wait(min(_LONGEST_REST, _REST * (self.tally.round_at - began)))
            except Exception as error:  # a locked database, a full disk: the next round reads the state again
                _LOG.error("the dispatcher failed and will retry", exc_info=error)
                self._service.failure = of_error(error).detail
                self._poll_at = 0.0
                self._stopping.wait(1.0)

    def _tick(self, woken: bool) -> None:
        for message in self._pool.poll():
            job = self._jobs.started.get(message.worker.job or "")
            if job is not None and job.pid == message.worker.pid:
                job.outcome = message.done or {}
            self._pool.free(message.worker)
        for run_id in self._remote.poll() if self._remote else ():
            if run_id in self._jobs.started:
                self._jobs.started[run_id].outcome = {}
        changed = woken
        for job in list(self._jobs.started.values()):
            self._check_lease(job)
            if self._follow(job):
                del self._jobs.started[job.id]
                changed = True
        self.tally.silence = max((job.silent for job in self._jobs.started.values()), default=0.0)
        if time.monotonic() >= self._scan_at:
            self._scan_at = time.monotonic() + _POLL_SECONDS
            self._jobs.follow_foreign()
            self._follow_unnotified()
            remove_partial(self._service)
        if changed or time.monotonic() >= self._poll_at:
            self._poll_at = time.monotonic() + _POLL_SECONDS
            self._start_runs()
            for lane in OTHER_LANES:
                self._start_other(lane)
            if self._remote is None:
                self._pool.warm(sum(1 for job in self._jobs.started.values() if job.kind == "run"))

    def _check_lease(self, job: Started) -> None:
        if job.outcome is not None or (self._remote is not None and job.kind == "run"):
            return
        starting = self._pool.has(job.id) and not self._pool.ready(job.id)
        overdue = self._leases.overdue(job, starting=starting)
        if overdue is not None:
            self._pool.drop(job.id)
            self._leases.revoke(job, *overdue)

    def _follow_unnotified(self) -> None:
        """Follow jobs that are recorded as started although the write seemed to fail, so that their workers were never
        notified."""
        with self._service.database.reading() as session:
            rows = session.scalars(select(Job).where(Job.state == "started", Job.id.not_in(list(self._jobs.started))))
            unnotified = [Started.of(row) for row in rows]
        for job in unnotified:
            if self._remote is not None and job.kind == "run":
                self._remote.submit(job.id)
            else:
                job.outcome = {}
            self._jobs.started[job.id] = job

    def _follow(self, job: Started) -> bool:
        """Check a job; return whether it is no longer running. An error in one job does not affect others."""
        now = time.monotonic()
        if now < self._not_before.get(job.id, 0.0) or (job.outcome is None and now < job.due):
            return False
        try:
            left = self._jobs.follow(job, ours=self._has(job.id))
            if self._remote is not None and job.kind == "run":  # its node wakes this thread only when the run ends
                job.due = now + calm_seconds(now - job.moved)
        except OperationalError:
            raise
        except Exception as error:  # a plugin may raise anything, and a disk may be full
            _LOG.error("a job can't be followed and will be checked again", job=job.id, exc_info=error)
            self._not_before[job.id] = time.monotonic() + _POLL_SECONDS
            return False
        self._not_before.pop(job.id, None)
        if left and job.pause is not None:
            self._not_before[job.id] = time.monotonic() + job.pause
        return left

    def _has(self, job_id: str) -> bool:
        return self._pool.has(job_id) or (self._remote is not None and self._remote.has(job_id))

    def _start_runs(self) -> None:
        cancelling = frozenset(self._service.cancelling)  # before the queue is read
        with self._service.database.reading() as session:
            broken = self._broken.known()
            read = queued_runs(session, by_sandbox=bool(broken))
            queued = [run for run in read if self._due(run.id) and run.id not in cancelling]
            if not queued:
                self._service.forecasts.seen = None
                return
            full = space_shortage(self._service)
            held = held_back(session, queued, broken) if broken else {}
            held |= {run.id: full for run in queued if not run.cancel} if full else {}
            looked_at = [run for run in queued if run.id not in held]
            started = session.scalars(select(Job).where(Job.state == "started", Job.kind == "run")).all()
            projects = session.scalars(select(Project).where(Project.id.in_({run.project_id for run in looked_at})))
            quotas = {project.id: Quota.model_validate(project.quota) for project in projects}
        running = [
            Running(
                job.id,
                job.user_id,
                job.project_id,
                Demand(job.cpus, job.memory_mb, job.gpus),
                (job.started_at or job.created_at).timestamp(),
                job.preemptible,
                leaving=job.id in self._jobs.started and self._jobs.started[job.id].leaving,
            )
            for job in started
        ]
        world = World(
            machine=self._whole(),
            queues=self._remote is not None,
            workers=(self._remote or self._pool).size["run"] - len(started),
            now=now().timestamp(),
            held_by_others=NOTHING if self._remote else self._held_by_others({job.id for job in started}),
            projects=quotas,
            served=self._served,
            history=self._history.shares(),
        )
        waiting, began = [run.as_waiting() for run in looked_at], time.time()
        self._service.forecasts.seen = Input(waiting, running, world)
        decision = decide(waiting, running, world)
        for run_id in decision.stop:
            self._leases.preempt(self._jobs.started.get(run_id))
        users = {run.id: run.user_id for run in looked_at}
        for run_id in decision.start:
            if self._assign(run_id, "run"):
                self._served[users[run_id]] = time.time()
        if decision.start and self._service.tracing is not None:
            self._service.tracing.decided(began, time.time(), len(waiting), len(decision.start))
        known = {run.id: run.waiting_for for run in queued}
        write_reasons(self._service.database, known, {**decision.waiting_for, **held})

    def _start_other(self, kind: str) -> None:
        """Start the oldest job of a type, if the single worker for that type is idle."""
        if any(job.kind == kind for job in self._jobs.started.values()) or space_shortage(self._service):
            return
        with self._service.database.reading() as session:
            query = select(Job.id).where(Job.state == "queued", Job.kind == kind)
            oldest = session.scalars(query.order_by(Job.priority.desc(), Job.queued_at, Job.id)).all()
        for job_id in oldest:
            if self._due(job_id) and self._assign(job_id, kind):
                return

    def _assign(self, job_id: str, kind: str) -> bool:
        """Record the job's worker in the database, then notify the worker."""

        def record(worker: WorkerProcess | None) -> dict[str, object] | None:
            begun = now()
            with self._service.database.writing() as session:
                row = session.get(Job, job_id)
                if row is None or row.state != "queued":
                    return None
                folder = self._service.job_dir(kind, job_id)
                # The worker reports a missing folder; an executor assigns a number to each of its jobs.
                fence = new_fence(folder) if worker is not None and folder.is_dir() else 0
                row.state, row.started_at, row.waiting_for = "started", begun, None
                row.worker_pid, row.worker_birth = (worker.pid, worker.birth) if worker else (None, None)
                row.attempts += 1
                if kind != "run":
                    begin(session, row)
                run = session.get(RunRow, job_id) if kind == "run" else None
                request: dict[str, object] = {}
                with contextlib.suppress(OSError, ValueError):  # the worker reports it
                    request = read_request(folder) if kind == "build" else {}
                secrets = secrets_of(self._service, run or row, session, request=request)
                earlier = keep_values(self._service, job_id, secrets.values()) if run is not None else set()
            self._jobs.started[job_id] = Started.of(row)
            self.tally.started[kind] += 1
            return {
                "id": job_id,
                "kind": kind,
                "folder": str(folder),
                "attempt": row.attempts,
                "fence": fence,
                "secrets": secrets,
                "earlier": sorted(earlier),
            }

        if self._remote is None or kind != "run":
            return self._pool.assign(kind, record)
        if record(None) is None:
            return False
        self._remote.submit(job_id)
        return True

    def _due(self, job_id: str) -> bool:
        """Return whether a job that failed recently may be tried again."""
        if time.monotonic() < self._not_before.get(job_id, 0.0):
            return False
        self._not_before.pop(job_id, None)
        return True

    def _whole(self) -> Demand:
        """Return the resources that are available to all runs together."""
        return self._machine if self._remote is None else self._remote.machine()

    def _held_by_others(self, ours: set[str]) -> Demand:
        """Return the resources held by other programs' runs in the same runs directory."""
        try:
            held = [slot for slot in self._slots.held() if slot.run not in ours]
        except MlereduxError as error:
            _LOG.error("the ledger of slots can't be read", reason=str(error))
            return self._machine  # guessing would oversubscribe the machine
        return Demand(
            sum(slot.cpus for slot in held), sum(slot.memory_mb for slot in held), sum(len(slot.gpus) for slot in held)
        )
