"""Startup: compare the database with the disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog
from mleredux.errors import MlereduxError
from mleredux.plugin.files import remove_tree
from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from mleredux_server.database import batches
from mleredux_server.database.tables import Idempotency, Job, Member, RunLabel, RunRow, User
from mleredux_server.runs.creation import drop_uncreated
from mleredux_server.runs.summary import facts_of, run_at
from mleredux_server.scheduler.actions import TRASH
from mleredux_server.scheduler.adoption import adopted
from mleredux_server.scheduler.history import USED, forget_job
from mleredux_server.scheduler.jobs import Started, end_damaged, end_run
from mleredux_server.service import Service

_LOG = structlog.get_logger()


def recover(service: Service) -> dict[str, Started]:
    """Reconcile database and disk after the previous server ended for any reason.

    Unacknowledged jobs are removed, runs without a row get one, and jobs whose directory is missing end. Jobs that
    workers of an earlier server still execute are returned, to be followed.
    """
    _drop_uncreated(service)
    _finish_deleting(service)
    there = set(service.store.ids())
    with service.database.reading() as session:
        known = set(session.scalars(select(RunRow.id)))
        open_ = {job.id: job for job in session.scalars(select(Job).where(Job.state != "ended", Job.kind == "run"))}
    if there - known:
        _adopt(service, sorted(there - known))
    with service.database.writing() as session:
        for run_id in open_.keys() - there:
            end_damaged(session, run_id, "The run's directory is missing.")
        for job in open_.values():
            if job.cancel and job.state == "queued" and job.id in there:
                _end_cancelled(session, service, job.id)
    with service.database.reading() as session:
        return {job.id: Started.of(job) for job in session.scalars(select(Job).where(Job.state == "started"))}


def sweep(service: Service) -> bool:
    """Stop processes that killed workers left in sandboxes and no one will resume; complete deletions of runs.

    Returns:
        Whether all sandboxes responded.
    """
    with service.database.reading() as session:
        sandboxes = list(session.scalars(select(RunRow.sandbox).distinct()))
    swept = True
    for name in sandboxes:
        if name not in service.catalogue.entries("sandboxes"):
            continue
        try:
            sweep_sandbox(service, name)
        except MlereduxError as error:
            _LOG.warning("a sandbox can't be cleaned up now", sandbox=name, reason=str(error))
            swept = False
    if swept:
        service.store.close_disks(_is_unfinished(service))
    trash = service.settings.state_dir / TRASH
    for path in trash.iterdir() if trash.is_dir() else ():
        remove_tree(path)
    return swept


def sweep_sandbox(service: Service, name: str) -> None:
    """Stop processes in a sandbox that belong to runs that no worker will resume.

    Raises:
        MlereduxError: The sandbox does not work now.
    """
    list(service.catalogue.sandbox(name).sweep(service.store.owner, _is_unfinished(service)))  # it may be a generator


def _is_unfinished(service: Service) -> Callable[[str], bool]:
    """Return a function that returns whether a worker executes a run, or will resume it."""
    with service.database.reading() as session:
        unfinished = set(session.scalars(select(Job.id).where(Job.state != "ended", Job.kind == "run")))
    return lambda run_id: run_id in unfinished or service.store.is_alive(run_id)


def _drop_uncreated(service: Service) -> None:
    with service.database.reading() as session:
        uncreated = session.scalars(select(Job.id).where(Job.state == "creating")).all()
    drop_uncreated(service, uncreated)
    with service.database.writing() as session:
        session.execute(delete(Idempotency).where(Idempotency.status.is_(None)))


def _finish_deleting(service: Service) -> None:
    """Delete rows of runs whose directories were moved away right before a kill."""
    trash = service.settings.state_dir / TRASH
    deleted = [path.name.rpartition("-")[0] for path in trash.iterdir()] if trash.is_dir() else []
    deleted = [run_id for run_id in deleted if not (service.store.path / run_id).exists()]
    if deleted:
        with service.database.writing() as session:
            for run_id in deleted:
                session.execute(delete(RunRow).where(RunRow.id == run_id))
                forget_job(session, run_id, service.settings.half_life)


def _end_cancelled(session: Session, service: Service, run_id: str) -> None:
    try:
        facts = facts_of(run_at(service.store, run_id))
    except (MlereduxError, ValueError, OSError):
        return  # the dispatcher reports the error when it processes it
    if facts.state.final:
        end_run(session, run_id, facts, 1)


def _adopt(service: Service, names: Sequence[str]) -> None:
    """Create rows for runs without one: created by the command line, or before the database was lost."""
    with service.database.reading() as session:
        place = session.execute(
            select(User.id, Member.project_id)
            .join(Member, Member.user_id == User.id)
            .where(User.admin, User.disabled_at.is_(None), Member.role == "owner")
            .order_by(User.created_at, Member.project_id)
            .limit(1)
        ).one_or_none()
    if place is None:
        return
    count = 0
    for some in batches(names):
        jobs, rows, labels = [], [], []
        for name in some:
            try:
                run = run_at(service.store, name)
                job, row = adopted(run, facts_of(run), str(place[0]), str(place[1]))
            except (MlereduxError, ValueError, OSError) as error:
                _LOG.warning("a run can't be read and is skipped", run=name, reason=str(error))
                continue
            jobs.append(job)
            rows.append(row)
            labels += [{"run_id": name, "name": key, "value": value} for key, value in row["labels"].items()]
        with service.database.writing() as session:
            session.execute(delete(Job).where(Job.id.in_([job["id"] for job in jobs]), Job.kind == USED))
            for table, values in ((Job, jobs), (RunRow, rows), (RunLabel, labels)):
                if values:
                    session.execute(insert(table), values)
        count += len(rows)
    _LOG.info("runs without a row were adopted", runs=count)
