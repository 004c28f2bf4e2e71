"""The thread of the server that hands jobs to workers and follows them."""

from __future__ import annotations

import threading
import time
from importlib import import_module

import structlog
from mleredux.errors import MlereduxError
from mleredux.sandboxes.slots import Slots
from sqlalchemy import func, select, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from mleredux_server.database.tables import Job, Project, RunRow, now
from mleredux_server.queueing.broken import BrokenSandboxes
from mleredux_server.queueing.decision import NOTHING, Allowance, Demand, Running, Waiting, World, decide
from mleredux_server.queueing.jobs import Jobs, Started
from mleredux_server.queueing.pool import OTHER_LANES, Pool, WorkerProcess
from mleredux_server.queueing.startup import recover, sweep
from mleredux_server.queueing.tally import Tally
from mleredux_server.runs import settle_left
from mleredux_server.schemas.accounts import Quota
from mleredux_server.service import Service

_LOG = structlog.get_logger()
_TICK = 0.5
_LOOK_AGAIN = 5.0
"""Seconds after which the queue is read although nobody said that it changed: other programs free slots too."""
_WINDOW = 500
"""Queued runs of one user that are looked at, the first in their order."""


class Dispatcher:
    """Hands queued jobs to workers and follows those that are worked on.

    Args:
        service: The service; its `wake` is set where there may be something to do.

    Attributes:
        tally: What it did so far.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self.tally = Tally()
        self._stopping = threading.Event()
        self._broken = BrokenSandboxes(service, self._stopping)
        self._jobs = Jobs(service, self.tally, self._broken.suspect)
        self._pool = Pool(service.settings, service.catalogue, service.wake.set, self.tally)
        self._slots = Slots(service.store.path)
        self._machine = Demand(self._slots.has.cpus, self._slots.has.memory_mb, len(self._slots.has.gpus))
        self._served: dict[str, float] = {}
        self._not_before: dict[str, float] = {}
        self._thread = threading.Thread(target=self._run, name="dispatcher", daemon=True)
        self._look_at = self._look_around_at = 0.0

    def start(self) -> None:
        """Compare the database with the disk, then begin.

        Raises:
            MlereduxError: The ledger of slots is damaged.
            OperationalError: The database does not answer.
        """
        self._jobs.started = recover(self._service)
        self._pool.warm(len(self._jobs.started))
        self._thread.start()
        threading.Thread(target=sweep, args=(self._service,), name="sweeper", daemon=True).start()

    def stop(self) -> None:
        """Hand out no more; workers finish what they work on, and the next server finds it."""
        self._stopping.set()
        self._service.wake.set()
        if self._thread.is_alive():
            self._thread.join(10)
        self._pool.close()

    def alive(self) -> bool:
        """Whether the thread lives."""
        return self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            woken = self._service.wake.wait(_TICK)
            self._service.wake.clear()
            if self._stopping.is_set():
                return
            try:
                self._tick(woken)
                self.tally.round_at = time.monotonic()
            except Exception as error:  # a locked database, a full disk: the next round finds all as it is then
                _LOG.error("the dispatcher failed, and tries again", exc_info=error)
                self._look_at = 0.0
                self._stopping.wait(1.0)

    def _tick(self, woken: bool) -> None:
        for told in self._pool.news():
            job = self._jobs.started.get(told.worker.job or "")
            if job is not None and job.pid == told.worker.pid:
                job.told = told.done or {}
            self._pool.free(told.worker)
        changed = woken
        for job in list(self._jobs.started.values()):
            if self._follow(job):
                del self._jobs.started[job.id]
                changed = True
        if time.monotonic() >= self._look_around_at:
            self._look_around_at = time.monotonic() + _LOOK_AGAIN
            self._jobs.follow_foreign()
            self._find_unheard()
            settle_left(self._service)
        if changed or time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _LOOK_AGAIN
            self._start_runs()
            for lane in OTHER_LANES:
                self._start_other(lane)
            self._pool.warm(sum(1 for job in self._jobs.started.values() if job.kind == "run"))

    def _find_unheard(self) -> None:
        """Follow jobs that were noted as started although the note seemed to fail: their workers were never told."""
        with self._service.database.reading() as session:
            rows = session.scalars(select(Job).where(Job.state == "started", Job.id.not_in(list(self._jobs.started))))
            unheard = [Started.of(row) for row in rows]
        for job in unheard:
            job.told = {}
            self._jobs.started[job.id] = job

    def _follow(self, job: Started) -> bool:
        """Look at a job; whether it is worked on no longer. What is wrong with one hinders no other."""
        if time.monotonic() < self._not_before.get(job.id, 0.0):
            return False
        try:
            left = self._jobs.follow(job, ours=self._pool.has(job.id))
        except OperationalError:
            raise
        except Exception as error:  # a kind of job is a plugin's, a disk may be full
            _LOG.error("a job can't be followed, and is looked at again", job=job.id, exc_info=error)
            self._not_before[job.id] = time.monotonic() + _LOOK_AGAIN
            return False
        self._not_before.pop(job.id, None)
        if left and job.queued_again:
            self._not_before[job.id] = time.monotonic() + 2.0 ** min(job.attempts, 5) / 4
        return left

    def _start_runs(self) -> None:
        place = (
            func.row_number()
            .over(partition_by=Job.user_id, order_by=(Job.cancel.desc(), Job.priority.desc(), Job.queued_at, Job.id))
            .label("place")
        )
        inner = select(Job.id.label("id"), place).where(Job.state == "queued", Job.kind == "run").subquery()
        with self._service.database.reading() as session:
            query = select(Job).join(inner, inner.c.id == Job.id).where(inner.c.place <= _WINDOW)
            queued = [job for job in session.scalars(query) if self._due(job.id)]
            if (broken := self._broken.known()) and queued:
                queued = self._held_back(session, queued, broken)
            if not queued:
                return
            started = session.scalars(select(Job).where(Job.state == "started", Job.kind == "run")).all()
            quotas = {
                project.id: Quota.model_validate(project.quota)
                for project in session.scalars(
                    select(Project).where(Project.id.in_({job.project_id for job in queued}))
                )
            }
        waiting = [
            Waiting(
                job.id,
                job.user_id,
                job.project_id,
                NOTHING if job.cancel else _demand(job),
                (job.queued_at or job.created_at).timestamp(),
                200 if job.cancel else job.priority,  # what is cancelled is done with first
            )
            for job in queued
        ]
        running = [
            Running(job.id, job.user_id, job.project_id, _demand(job), (job.started_at or job.created_at).timestamp())
            for job in started
        ]
        decision = decide(
            waiting,
            running,
            World(
                machine=self._machine,
                workers=self._pool.size["run"] - len(started),
                now=now().timestamp(),
                elsewhere=self._elsewhere({job.id for job in started}),
                projects={name: _allowance(quota) for name, quota in quotas.items()},
                served=self._served,
            ),
        )
        by_id = {job.id: job for job in queued}
        for run_id in decision.start:
            if self._hand_out(by_id[run_id]):
                self._served[by_id[run_id].user_id] = time.time()
        fresh = {name: why for name, why in decision.waiting_for.items() if by_id[name].waiting_for != why}
        self._tell_waiting(fresh)

    def _held_back(self, session: Session, queued: list[Job], broken: dict[str, str]) -> list[Job]:
        """Those whose sandbox works; the others are told what they wait for."""
        query = select(RunRow.id, RunRow.sandbox).where(
            RunRow.sandbox.in_(broken), RunRow.id.in_([job.id for job in queued if not job.cancel])
        )
        held = {run_id: broken[sandbox] for run_id, sandbox in session.execute(query)}
        self._tell_waiting(
            {job.id: held[job.id] for job in queued if job.waiting_for != held.get(job.id, job.waiting_for)}
        )
        return [job for job in queued if job.id not in held]

    def _tell_waiting(self, fresh: dict[str, str]) -> None:
        if fresh:
            with self._service.database.writing() as session:
                for run_id, why in fresh.items():
                    session.execute(update(Job).where(Job.id == run_id, Job.state == "queued").values(waiting_for=why))

    def _start_other(self, kind: str) -> None:
        """The oldest of its kind, where its one worker is free."""
        if any(job.kind == kind for job in self._jobs.started.values()):
            return
        with self._service.database.reading() as session:
            oldest = session.scalars(
                select(Job)
                .where(Job.state == "queued", Job.kind == kind)
                .order_by(Job.priority.desc(), Job.queued_at, Job.id)
                .limit(20)
            ).all()
        for job in oldest:
            if self._due(job.id) and self._hand_out(job):
                return

    def _hand_out(self, job: Job) -> bool:
        """Note in the database who does a job, then tell them."""

        def tell(worker: WorkerProcess) -> dict[str, object] | None:
            begun = now()
            with self._service.database.writing() as session:
                row = session.get(Job, job.id)
                if row is None or row.state != "queued":
                    return None
                row.state, row.started_at, row.waiting_for = "started", begun, None
                row.worker_pid, row.worker_birth, row.attempts = worker.pid, worker.birth, row.attempts + 1
                if job.kind != "run":
                    kind = import_module(f"mleredux_server.work.{job.kind}")
                    if hasattr(kind, "begun"):
                        kind.begun(session, row)
            self._jobs.started[job.id] = Started.of(row)
            self.tally.started[job.kind] += 1
            folder = self._service.job_dir(job.kind, job.id)
            return {"id": job.id, "kind": job.kind, "folder": str(folder), "attempt": row.attempts}

        return self._pool.give(job.kind, tell)

    def _due(self, job_id: str) -> bool:
        """Whether a job that failed a moment ago may be tried again."""
        if time.monotonic() < self._not_before.get(job_id, 0.0):
            return False
        self._not_before.pop(job_id, None)
        return True

    def _elsewhere(self, ours: set[str]) -> Demand:
        """What runs that are not this server's hold in the same runs directory."""
        try:
            held = [slot for slot in self._slots.held() if slot.run not in ours]
        except MlereduxError as error:
            _LOG.error("the ledger of slots can't be read", reason=str(error))
            return self._machine  # guessing would oversubscribe the machine
        return Demand(
            sum(slot.cpus for slot in held), sum(slot.memory_mb for slot in held), sum(len(slot.gpus) for slot in held)
        )


def _demand(job: Job) -> Demand:
    return Demand(job.cpus, job.memory_mb, job.gpus)


def _allowance(quota: Quota) -> Allowance:
    return Allowance(quota.concurrent_runs, quota.cpus, quota.memory_mb, quota.gpus, quota.weight)
