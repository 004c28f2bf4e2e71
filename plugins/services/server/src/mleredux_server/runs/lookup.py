"""Find resources that a caller may see; anything else is reported as not found."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from mleredux.errors import NotFound
from mleredux.plugin.files import Mask
from mleredux_executor_nodes.shared import StoredRuns
from mleredux_http_api import RunView
from sqlalchemy import ColumnElement, select, tuple_
from sqlalchemy.orm import Session

from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import BuildRow, Experiment, Job, RunRow, Submission, User
from mleredux_server.files.access import Cover, Opened, open_inside, opened
from mleredux_server.operations.places import places
from mleredux_server.protocol.problems import not_found
from mleredux_server.runs.lists import cursor_time, of_project, one_of, shown_runs, visible_to
from mleredux_server.runs.views import run_view
from mleredux_server.schemas.pages import Paging
from mleredux_server.service import Service
from mleredux_server.streams.tail import End

_MOST_PAST = 1000
_WORDS: dict[type, str] = {BuildRow: "build", Experiment: "experiment", Submission: "submission"}

_Row = TypeVar("_Row", BuildRow, Experiment, Submission)


class Listed(NamedTuple):
    """A run's row, and the state of its job."""

    id: str
    project_id: str
    status: str
    job: str


@dataclass(frozen=True)
class SeenRun:
    """A run that is visible to the caller.

    Attributes:
        path: Its directory; if that is no longer on this machine, a copy without large files of its agent.
        ended: Whether it has ended permanently and will not be resumed.
        stored: The object store's runs, which have the files that are missing from the directory.
        hidden: Hides the server's folders in files that no agent wrote, which are at the top of the directory.
    """

    id: str
    path: Path
    project: str
    status: str
    ended: bool
    hidden: Mask
    stored: StoredRuns | None = None

    def open(self, path: bytes, cover: Cover | None = None) -> Opened:
        """Open a file of the run, from the disk or the object store.

        Args:
            path: Relative to its directory, with `/`; from `names.path_of`.
            cover: How to read it, if it may hold secrets.

        Raises:
            OSError: There is no regular file with that name, or a part of the path is a link.
            StoreError: It is not on this machine, and the object store does not respond, or has a damaged object.
        """
        file = self._open(path, cover)
        if b"/" in path:
            return file
        return replace(file, mask=self.hidden if file.mask is None else self.hidden | file.mask)

    def _open(self, path: bytes, cover: Cover | None) -> Opened:
        try:
            return open_inside(self.path, path, cover)
        except FileNotFoundError:
            if self.stored is None:
                raise
            try:
                return opened(self.stored.open(self.id, os.fsdecode(path)), cover)
            except NotFound as error:
                raise FileNotFoundError(error.message) from error


def run_of(service: Service, caller: Caller, run_id: str, known: Mapping[str, Listed] | None = None) -> SeenRun:
    """Return a run by its id.

    Args:
        service: The service.
        caller: The requesting user.
        run_id: Id of the run.
        known: Runs that were just read with `listed`.

    Raises:
        Problem: The caller can see no such run.
        NotFound: It has ended, and its files are neither on this machine nor in the object store.
        StoreError: Its files are not on this machine, and the object store does not respond, or has a damaged object.
    """
    row = (known if known and run_id in known else listed(service, [run_id])).get(run_id)
    if row is None or not caller.sees(row.project_id):
        raise not_found("run", run_id)
    hidden = Mask(places(service.settings.runs_dir, service.data.path))
    if row.job != "ended":
        return SeenRun(row.id, service.store.path / row.id, row.project_id, row.status, False, hidden)
    path, stored = service.ended_run(row.id), service.stored_runs
    return SeenRun(row.id, path, row.project_id, row.status, True, hidden, stored)


def listed(service: Service, run_ids: Collection[str]) -> dict[str, Listed]:
    """Return rows of runs in one query, regardless of who may see them."""
    query = select(RunRow.id, RunRow.project_id, RunRow.status, Job.state).join(Job, Job.id == RunRow.id)
    with service.database.reading() as session:
        return {row.id: Listed(*row) for row in session.execute(query.where(one_of(RunRow.id, list(run_ids))))}


def run_shown(service: Service, caller: Caller, run_id: str) -> RunView:
    """Return a run's view by its id.

    Raises:
        Problem: The caller can see no such run.
    """
    with service.database.reading() as session:
        record = session.execute(shown_runs().where(RunRow.id == run_id)).one_or_none()
    if record is None or not caller.sees(record[0].project_id):
        raise not_found("run", run_id)
    row, name, job = record
    return run_view(row, name or "", job, service.failure)


def run_is_over(service: Service, run_id: str) -> End | None:
    """Return whether a run is final: its job has ended, or it is deleted."""
    with service.database.reading() as session:
        row, job = session.get(RunRow, run_id), session.get(Job, run_id)
    if row is None or job is None:
        return End(None)
    return End(row.status) if job.state == "ended" else None


def find(service: Service, caller: Caller, table: type[_Row], record_id: str) -> tuple[_Row, str]:
    """Return a build, an experiment or a submission by its id, with the name of its owner.

    Raises:
        Problem: The caller can see no such record.
    """
    query = select(table, User.name).join(User, User.id == table.user_id).where(table.id == record_id)
    with service.database.reading() as session:
        row = session.execute(query).one_or_none()
    if row is None or not caller.sees(row[0].project_id):
        raise not_found(_WORDS[table], record_id)
    return row[0], row[1]


def newest(
    session: Session,
    caller: Caller,
    table: type[_Row],
    paging: Paging,
    *where: ColumnElement[bool],
    project: str | None = None,
) -> tuple[list[tuple[_Row, str]], str | None]:
    """Return a page of records that the caller may see with their owners' names, newest first, and the cursor of the
    next page.

    Args:
        session: A session for reading.
        caller: The requesting user.
        table: The table to list.
        paging: The requested page.
        where: Additional conditions.
        project: Id or name of the only project; None for all visible ones.

    Raises:
        Problem: The cursor is not from this list, or there is no such project.
    """
    projects = of_project(session, caller, table.project_id, project)
    query = select(table, User.name).join(User, User.id == table.user_id).where(*where, *projects)
    if (place := paging.place(str, str)) is not None:
        query = query.where(tuple_(table.created_at, table.id) < (cursor_time(place[0]), place[1]))
    query = query.order_by(table.created_at.desc(), table.id.desc()).limit(paging.limit + 1)
    rows = [(row, name) for row, name in session.execute(query)]
    shown, cursor = paging.cut(rows, lambda record: (record[0].created_at.isoformat(), record[0].id))
    return list(shown), cursor


def past_runs(service: Service, caller: Caller, agents: Collection[str]) -> list[Path]:
    """Return the directories of ended runs of some agents that the caller may see, newest first, at most
    `_MOST_PAST`."""
    seen_runs = visible_to(caller, RunRow.project_id)
    query = shown_runs().where(RunRow.agent.in_(agents), RunRow.ended_at.is_not(None), *seen_runs)
    with service.database.reading() as session:
        rows = session.execute(query.order_by(RunRow.created_at.desc()).limit(_MOST_PAST)).all()
    return [service.store.path / row.id for row, *_ in rows]
