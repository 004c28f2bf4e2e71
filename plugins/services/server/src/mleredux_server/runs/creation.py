"""Create jobs: rows and folders, so that a kill at any time leaves either a complete job or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from mleredux.errors import MlereduxError
from mleredux.plugin.files import remove_tree
from sqlalchemy import delete, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from mleredux_server.accounts.accounts import default_project, note, visible_project
from mleredux_server.accounts.security import Caller
from mleredux_server.database import batches
from mleredux_server.database.tables import BuildRow, Experiment, Job, Project, RunRow, Submission, now
from mleredux_server.protocol.idempotency import UNCLAIMED, Answer, Claim
from mleredux_server.protocol.problems import Problem
from mleredux_server.service import Service

_Row = TypeVar("_Row")
_OneRow = TypeVar("_OneRow", BuildRow, Submission)


def make_jobs(
    service: Service,
    caller: Caller,
    ids: Sequence[str],
    project: str | None,
    *,
    rows: Callable[[Session, Project], list[_Row]],
    folders: Callable[[], None],
    answer: Callable[[list[_Row]], Answer] | None = None,
    claim: Claim = UNCLAIMED,
) -> list[_Row]:
    """Create all jobs or none.

    Rows are created first, with the state `creating`, then the folders; then the jobs become `queued`. Jobs that are
    still `creating` after a kill were never acknowledged, and are removed at the next start.

    Args:
        service: The service.
        caller: The requesting user.
        ids: Ids of the jobs.
        project: Id or name of the project; None for the caller's own.
        rows: Checks the project's quota, and adds the rows of the jobs and the rows that it returns.
        folders: Creates the jobs' folders.
        answer: Builds the response for a repeated request.
        claim: For a request with an Idempotency-Key; needs `answer`.

    Returns:
        What `rows` returned.

    Raises:
        Replayed: The request is a repeat.
        Problem: The project does not exist, or does not allow it.
        MlereduxError, OSError: A folder can't be created.
    """
    try:
        with service.database.writing() as session:
            claim.take(session)
            home = project_for(session, caller, project)
            session.refresh(home, with_for_update=True)  # so that concurrent requests can't exceed the quota
            created = rows(session, home)
        folders()
        with service.database.writing() as session:
            for some in batches(ids):
                session.execute(update(Job).where(Job.id.in_(some)).values(state="queued", queued_at=now()))
            note(session, caller, *_created(created))
            if claim.key and answer is not None:
                claim.keep(session, answer(created))
    except SQLAlchemyError:
        service.left.append((list(ids), claim))  # it may be committed: unknown while the database does not respond
        raise
    except Problem:
        raise  # a quota: nothing was created
    except (MlereduxError, OSError):
        service.left.append((list(ids), claim))
        with suppress(SQLAlchemyError):  # the scheduler does it once the database responds
            remove_partial(service)
        raise
    service.wake.set()
    return created


def _created(rows: Sequence[Any]) -> tuple[str, str]:
    """Return an action and its target for the audit log: the project and the created ids; of many runs, only the first
    and their experiment."""
    whole = dict.fromkeys(str(each) for row in rows if (each := getattr(row, "experiment_id", None)))
    ids = [str(row.id) for row in rows[: 1 if whole else 20]]
    return f"{str(rows[0].__tablename__).removesuffix('s')}.create", " ".join([rows[0].project_id, *ids, *whole])


def make_job(
    service: Service,
    caller: Caller,
    row: _OneRow,
    job: Job,
    project: str | None,
    *,
    check: Callable[[Session, Project], None],
    fill: Callable[[Path], None],
    answer: Callable[[_OneRow], Answer],
    claim: Claim,
) -> _OneRow:
    """Create one job other than a run, as `make_jobs` does.

    Args:
        service: The service.
        caller: The requesting user.
        row: The displayed record; its owner is filled in.
        job: The worker's job; it gets the row's id and times.
        project: Id or name of the project; None for the caller's own.
        check: Checks whether the project allows it.
        fill: Writes the worker's input into the job's folder.
        answer: Builds the response for a repeated request.
        claim: For a request with an Idempotency-Key.
    """

    def rows(session: Session, home: Project) -> list[_OneRow]:
        check(session, home)
        job.id, job.created_at = row.id, row.created_at
        row.project_id = job.project_id = home.id
        row.user_id = job.user_id = caller.user_id
        session.add_all([job, row])
        return [row]

    def folders() -> None:
        folder = service.job_dir(job.kind, row.id)
        folder.mkdir(parents=True, mode=0o700)
        fill(folder)

    make_jobs(
        service,
        caller,
        [row.id],
        project,
        rows=rows,
        folders=folders,
        answer=lambda created: answer(created[0]),
        claim=claim,
    )
    return row


def project_for(session: Session, caller: Caller, name_or_id: str | None) -> Project:
    """Return the project in which to create something: the named one, or the caller's own.

    Raises:
        Problem: The caller can see no such project.
    """
    if name_or_id is not None:
        return visible_project(session, caller, name_or_id)
    if (mine := default_project(session, caller)) is None:
        raise Problem("forbidden", "You are not a member of any project.", hint="Ask an administrator to add you.")
    return mine


def remove_partial(service: Service) -> None:
    """Remove what partially failed requests created.

    Raises:
        SQLAlchemyError: The database does not respond; the remaining ids stay recorded.
    """
    while service.left:
        ids, claim = service.left[0]
        uncreated: list[str] = []
        with service.database.reading() as session:
            for some in batches(ids):
                uncreated += session.scalars(select(Job.id).where(Job.id.in_(some), Job.state == "creating"))
        if uncreated:
            drop_uncreated(service, uncreated, claim)
        with suppress(IndexError, ValueError):  # another thread may have done so already
            service.left.remove((ids, claim))


def drop_uncreated(service: Service, ids: Sequence[str], claim: Claim = UNCLAIMED) -> None:
    """Remove jobs that were never acknowledged, their experiments, and the claim of the request."""
    with service.database.reading() as session:
        kinds = [
            (str(job_id), str(kind))
            for some in batches(ids)
            for job_id, kind in session.execute(select(Job.id, Job.kind).where(Job.id.in_(some)))
        ]
    for job_id, kind in kinds:
        remove_tree(service.job_dir(kind, job_id))
    with service.database.writing() as session:
        experiments: set[str | None] = set()
        for some in batches(ids):
            experiments |= set(session.scalars(select(RunRow.experiment_id).where(RunRow.id.in_(some)).distinct()))
            for table in (RunRow, Submission, BuildRow):
                session.execute(delete(table).where(table.id.in_(some)))
            session.execute(delete(Job).where(Job.id.in_(some), Job.state == "creating"))
        left = select(RunRow.id).where(RunRow.experiment_id == Experiment.id).exists()
        session.execute(delete(Experiment).where(Experiment.id.in_(experiments - {None}), ~left))
        claim.release(session)
