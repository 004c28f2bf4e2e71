"""Start, follow and end jobs in the database. All of this runs in the dispatcher's thread."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog
from mleredux.errors import MlereduxError, may_pass
from mleredux.models.events import Attempt, StateEntered
from mleredux.plugin.artifact import CAUSES, Cause, Run, State
from mleredux.plugin.files import FileLock
from mleredux.plugin.host import process_birth
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from mleredux_server.database.tables import Job, Project, RunRow, now
from mleredux_server.operations.health import space_shortage
from mleredux_server.operations.messages import announce
from mleredux_server.runs.summary import OPEN, PREEMPTED, Facts, facts_of, log_bytes, run_at, write_row
from mleredux_server.scheduler.tally import Tally
from mleredux_server.service import Service
from mleredux_server.work import ATTEMPT_FILE, LOCK_FILE, RESULT_FILE, settle

_LOG = structlog.get_logger()
MOST_ATTEMPTS = 3
"""Number of workers that may die on a job, without finishing a stage in between, before it is given up."""
_UNREAD = 1000
"""Number of rows searched at a time for runs that ended before a migration."""
_JOB_ENDED = select(Job.state).where(Job.id == RunRow.id).scalar_subquery() == "ended"
"""For queries of few runs, whose rows are looked up before their jobs."""
_PAUSES = (10.0, 120.0)
"""Seconds until a run that failed for a temporary reason is started again: initially, and at most."""
_SLACK_SECONDS = 60.0
"""Seconds that a worker has to end an agent whose time limit and grace period have passed."""
STOPPED = "A user cancelled the run."
_LONG_SECONDS = 600.0
"""A worker that died after executing a job for this many seconds did not die because of it."""


@dataclass
class Started:
    """A job that is running.

    Attributes:
        log_bytes: Size of the event log when the row was last updated from it.
        outcome: The worker's final report; an empty dict if the worker died.
        pause: Seconds until it may be started again, if it ended without a result and is queued for another worker.
        stage: Name of its current stage, with the stage's time limit in seconds; 0: the common limit of stages.
        lease: The lease as last read.
        silent: Seconds since the lease was renewed.
        in_stage: Seconds in `timed_stage`.
        read_at: When the lease was last read, on the monotonic clock.
        moved: When its event log last grew.
        due: When its event log is read next, unless it is reported as done.
        lost: Why the server killed its worker.
        leaving_for: Seconds since it was preempted; None if it was not.
        waiting_for: Why its run does not continue, as stored.
    """

    id: str
    kind: str
    attempts: int
    started_at: datetime
    pid: int | None
    birth: float | None
    log_bytes: int = -1
    outcome: dict[str, Any] | None = None
    pause: float | None = None
    stage: tuple[str, float] = ("", 0.0)
    timed_stage: tuple[str, float] = ("", 0.0)
    lease: dict[str, Any] | None = None
    silent: float = 0.0
    in_stage: float = 0.0
    read_at: float = field(default_factory=time.monotonic)
    moved: float = field(default_factory=time.monotonic)
    due: float = 0.0
    lost: str | None = None
    leaving_for: float | None = None
    waiting_for: str | None = None

    @classmethod
    def of(cls, job: Job) -> Started:
        """Create it from its database row."""
        begun, worker = job.started_at or job.created_at, (job.worker_pid, job.worker_birth)
        return cls(job.id, job.kind, job.attempts, begun, *worker, waiting_for=job.waiting_for)

    @property
    def leaving(self) -> bool:
        """Return whether it was preempted."""
        return self.leaving_for is not None

    @property
    def worker_lives(self) -> bool:
        """Return whether the process that received the job exists."""
        return self.pid is not None and self.birth is not None and process_birth(self.pid) == self.birth


class Jobs:
    """Follows the running jobs."""

    def __init__(self, service: Service, tally: Tally, broke: Callable[[str], None]) -> None:
        self._service, self._tally, self._broke = service, tally, broke
        self.started: dict[str, Started] = {}
        self._read_to: str | None = ""
        self._rules = ThreadPoolExecutor(1, thread_name_prefix="sequential-rules")

    def follow(self, job: Started, *, ours: bool) -> bool:
        """Check a job: update its row, end it, or queue it again.

        Args:
            job: The job.
            ours: Whether a worker of this server has the job and has not reported it as done.

        Returns:
            Whether it is no longer running.
        """
        return self._follow_run(job, ours) if job.kind == "run" else self._follow_other(job, ours)

    def follow_foreign(self) -> None:
        """Update the rows of runs that other programs execute."""
        with self._service.database.reading() as session:
            rows = session.execute(select(RunRow.id, RunRow.log_bytes).where(RunRow.status.in_(OPEN), _JOB_ENDED)).all()
        changed = [
            run_id for run_id, size in rows if log_bytes(self._service.job_dir("run", run_id) / "events.jsonl") != size
        ]
        for run_id in [*changed, *self._unread()]:
            try:
                facts = facts_of(run_at(self._service.store, run_id))
            except (MlereduxError, ValueError, OSError) as error:
                _LOG.warning("a run can't be read", run=run_id, reason=str(error))
                continue
            with self._service.database.writing() as session:
                write_row(session, run_id, facts)

    def _unread(self) -> Sequence[str]:
        """Return some runs that ended before a migration added columns, whose values must be read from their
        directories."""
        if self._read_to is None:
            return ()
        next_ones = select(RunRow.id).where(RunRow.id > self._read_to).order_by(RunRow.id).limit(_UNREAD).subquery()
        unread = (RunRow.status.not_in(OPEN), RunRow.log_bytes == -1, _JOB_ENDED)
        with self._service.database.reading() as session:
            self._read_to = session.scalar(select(func.max(next_ones.c.id)))
            return session.scalars(select(RunRow.id).where(RunRow.id.in_(select(next_ones.c.id)), *unread)).all()

    def _follow_run(self, job: Started, ours: bool) -> bool:
        path = self._service.job_dir("run", job.id)
        size = log_bytes(path / "events.jsonl")
        if ours and size == job.log_bytes:
            return False
        free = not ours and not FileLock(path / ".lock").held_elsewhere()  # before its files are read
        if size == job.log_bytes and not free:
            return False
        try:
            run = run_at(self._service.store, job.id)
            facts = facts_of(run)
        except (MlereduxError, ValueError, OSError) as error:
            if free and not job.worker_lives:
                _LOG.error("a run can't be read", job=job.id, reason=str(error))
                with self._service.database.writing() as session:
                    end_damaged(session, job.id, str(error))
                self._tally.ended["run", "failed"] += 1
                return True
            return False
        if free and (facts.state.final or not (ours or (job.outcome is None and job.worker_lives))):
            return self._leave_run(job, run, facts)
        if facts.state.final:
            return False  # shown once its worker has released it: then it can be retried or deleted immediately
        with self._service.database.writing() as session:
            write_row(session, job.id, facts)
            if job.waiting_for != (why := run.log.state.waiting_for):
                session.execute(update(Job).where(Job.id == job.id, Job.state == "started").values(waiting_for=why))
                job.waiting_for = why
        job.log_bytes, job.moved = facts.log_bytes, time.monotonic()
        limits = run.spec.limits
        limit = limits.time_limit + limits.grace + _SLACK_SECONDS if facts.agent_works else 0.0
        job.stage = (str(facts.state), limit)
        return False

    def _leave_run(self, job: Started, run: Run, facts: Facts) -> bool:
        """Handle a job that is no longer running: end it, queue it again, or give it up."""
        swept = True
        if (why := self._temporary_cause(job, run, facts)) is not None and _reopened(run):
            self._broke(run.spec.sandbox)
            self._queue_again(job, 0, facts_of(run), why)
            return True
        if not facts.state.final:
            progress = any(time >= job.started_at for time in facts.stages)
            long = (datetime.now(UTC) - job.started_at).total_seconds() > _LONG_SECONDS
            passing = progress or (long and job.lost is None) or space_shortage(self._service)
            attempts = 0 if passing else self._attempts(job)
            attempts -= job.leaving and attempts > 0  # the worker was not the cause
            if run.cancel_asked:  # another worker might have to wait, or hang like this one
                cause, message = Cause.CANCELLED, STOPPED
            elif attempts < MOST_ATTEMPTS:
                self._queue_again(job, attempts, facts)
                return True
            else:
                cause, message = Cause.ENVIRONMENT_BROKE, _workers_died(job, attempts)
            if not run.give_up(cause, message):
                return False
            swept = self._sweep(run)
            facts = facts_of(run)
        used = (job.outcome or {}).get("disk_mb")
        if used is None:
            from mleredux_server.work.run import disk_mb

            used = disk_mb(run)
        from mleredux_server.scheduler.budgets import charge, stop_queued  # it ends runs itself

        with self._service.database.writing() as session:
            spent = charge(session, run)
            end_run(session, job.id, facts, used)
            request = getattr(session.get(RunRow, job.id), "request", None) or {}
        if self._service.tracing is not None:
            self._service.tracing.run_ended(run, request.get("traceparent"))
        self._tally.ended["run", str(facts.state)] += 1
        if spent is not None:
            stop_queued(self._service, spent)
        elif run.spec.experiment is not None:
            self._rules.submit(self._apply_sequential_rule, run.spec.experiment)
        if facts.cause == Cause.ENVIRONMENT_BROKE or not swept:  # now that its job has ended, its leftovers are removed
            self._broke(run.spec.sandbox)
        return True

    def _temporary_cause(self, job: Started, run: Run, facts: Facts) -> str | None:
        """Return why a run failed, if the reason may be temporary: a full disk, an engine that was restarted.

        A run waits as long as the reason lasts, and longer after each failure, unless its agent is started each time.
        """
        if facts.cause is None or CAUSES[Cause(facts.cause)].counts or run.cancel_asked:
            return None
        since, message = max(facts.stages, default=run.spec.created_at), facts.results["message"] or ""
        recent = [event.payload for event in run.events() if event.time > since]
        failures = sum(isinstance(payload, StateEntered) and payload.cause is not None for payload in recent)
        tries = sum(isinstance(payload, Attempt) for payload in recent) if may_pass(message) else failures
        full = space_shortage(self._service) or (message if os.strerror(errno.ENOSPC) in message else None)
        why = full or (message if facts.cause == Cause.ENVIRONMENT_BROKE and tries < MOST_ATTEMPTS else None)
        job.pause = min(_PAUSES[0] * 2.0 ** (failures // MOST_ATTEMPTS), _PAUSES[1]) if why else None
        return why

    def _apply_sequential_rule(self, experiment_id: str) -> None:
        """Apply the sequential rule, which takes seconds with many runs."""
        from mleredux_server.scheduler.budgets import apply_sequential_rule, stop_queued

        try:
            if apply_sequential_rule(self._service, experiment_id):
                stop_queued(self._service, experiment_id)
        except Exception as error:  # the next run that ends tries again
            _LOG.error("the sequential rule failed", experiment=experiment_id, exc_info=error)

    def _attempts(self, job: Started) -> int:
        """Return the number of workers that started the job; workers that died earlier are not counted."""
        try:
            begun = (self._service.job_dir(job.kind, job.id) / ATTEMPT_FILE).read_text() == str(job.attempts)
        except (OSError, ValueError):
            begun = False
        return job.attempts if begun else max(0, job.attempts - 1)

    def _queue_again(self, job: Started, attempts: int, facts: Facts | None = None, why: str | None = None) -> None:
        job.pause = 2.0 ** min(job.attempts, 5) / 4 if why is None else job.pause
        _LOG.warning("a job is queued again", job=job.id, kind=job.kind, attempts=attempts, outcome=job.outcome)
        with self._service.database.writing() as session:
            session.execute(
                update(Job)
                .where(Job.id == job.id, Job.state == "started")
                .values(state="queued", attempts=attempts, worker_pid=None, worker_birth=None, waiting_for=why)
            )
            if facts is not None:
                write_row(session, job.id, facts, status=PREEMPTED if job.leaving else "queued")
        self._tally.retried[job.kind] += 1

    def _sweep(self, run: Run) -> bool:
        """Clean up leftovers of a job's workers in the sandbox; return whether it responded."""
        service = self._service
        with suppress(MlereduxError):
            list(service.catalogue.sandbox(run.spec.sandbox).sweep(service.store.owner, lambda other: other != run.id))
            service.store.close_disks(lambda other: other != run.id)
            return True
        return False

    def _follow_other(self, job: Started, ours: bool) -> bool:
        folder = self._service.job_dir(job.kind, job.id)
        if ours or FileLock(folder / LOCK_FILE).held_elsewhere():
            return False
        answer = _answer(folder)
        if answer is None:
            if job.outcome is None and job.worker_lives:
                return False
            attempts = self._attempts(job)
            if attempts < MOST_ATTEMPTS and folder.is_dir():
                self._queue_again(job, attempts)
                return True
            answer = {"result": None, "error": _workers_died(job, attempts)}
        with self._service.database.writing() as session:
            row = session.get(Job, job.id)
            if row is not None and row.state == "started":
                settle(session, row, answer["result"], answer["error"])
                row.state, row.ended_at, row.worker_pid = "ended", now(), None
        self._tally.ended[job.kind, "failed" if answer["error"] else "done"] += 1
        return True


def end_run(session: Session, run_id: str, facts: Facts, disk_mb: int) -> None:
    """End the job of a run, and add its LLM usage to the project's, once."""
    job = session.get(Job, run_id)
    if job is None:
        return
    write_row(session, run_id, facts)
    if job.state == "ended":
        return
    job.state, job.ended_at, job.waiting_for = "ended", facts.ended_at or now(), None
    job.worker_pid = job.worker_birth = None
    job.disk_mb = disk_mb
    fresh = max(0, facts.llm_tokens - job.llm_tokens_counted)
    if fresh:
        job.llm_tokens_counted += fresh
        session.execute(
            update(Project).where(Project.id == job.project_id).values(llm_tokens_used=Project.llm_tokens_used + fresh)
        )
    announce(session, run_id)


def end_damaged(session: Session, run_id: str, reason: str) -> None:
    """End the job of a run whose directory is missing or can't be read."""
    ended = now()
    session.execute(
        update(Job)
        .where(Job.id == run_id)
        .values(state="ended", ended_at=ended, disk_mb=0, waiting_for=None, worker_pid=None)
    )
    session.execute(
        update(RunRow)
        .where(RunRow.id == run_id)
        .values(status="failed", cause=str(Cause.ENVIRONMENT_BROKE), message=reason, ended_at=ended, updated_at=ended)
    )
    announce(session, run_id)


def _reopened(run: Run) -> bool:
    """Reopen a failed run so that it continues where it failed; return False if another process has the run."""
    with run.lock.attempt() as acquired:
        if acquired:
            run.enter(State.QUEUED)
    return acquired


def _workers_died(job: Started, attempts: int) -> str:
    error = (job.outcome or {}).get("error")
    why = f" The last one reported: {error}" if error else f" The last one was killed: {job.lost}" if job.lost else ""
    return f"{attempts} workers died one after another without making progress.{why}"


def _answer(folder: Path) -> dict[str, Any] | None:
    try:
        answer: dict[str, Any] = json.loads((folder / RESULT_FILE).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        return {"result": None, "error": f"Its result can't be read ({type(error).__name__})."}
    return answer
