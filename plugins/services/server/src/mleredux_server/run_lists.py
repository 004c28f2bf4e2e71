"""Lists of runs: filters, order and pages. Every order has an index, and a page begins where the last one ended."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Select, false, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session, load_only

from mleredux_server.accounts import visible_project
from mleredux_server.database.tables import Job, RunLabel, RunRow, User
from mleredux_server.problems import Problem
from mleredux_server.schemas.pages import Paging, bad_cursor
from mleredux_server.schemas.runs import RunView
from mleredux_server.security import Caller
from mleredux_server.views import run_view

Sort = Literal["-created_at", "created_at", "-score", "score"]
_Condition = ColumnElement[bool]
_Shown = tuple[RunRow, str | None, Job | None]
_NOT_SHOWN = {"request", "log_bytes"}


@dataclass(frozen=True)
class Wanted:
    """Filters and order of a list.

    Attributes:
        labels: `name:value`; all must match.
        after, before: Exclusive bounds of `created_at`.
    """

    task: str | None = None
    agent: str | None = None
    statuses: Sequence[str] = ()
    cause: str | None = None
    medal: str | None = None
    verdict: str | None = None
    project: str | None = None
    experiment: str | None = None
    labels: Sequence[str] = ()
    after: datetime | None = None
    before: datetime | None = None
    sort: Sort = "-created_at"


def runs_page(session: Session, caller: Caller, wanted: Wanted, paging: Paging) -> tuple[list[RunView], str | None]:
    """Return a page of runs visible to the caller, and the next cursor.

    Raises:
        Problem: A filter or the cursor is malformed, or there is no such project.
    """
    where = conditions(session, caller, wanted)
    order, backward = wanted.sort.removeprefix("-"), wanted.sort.startswith("-")
    place = paging.place(str, object, str)
    if place is not None and place[0] != wanted.sort:
        raise bad_cursor()
    if order == "created_at":
        at = None if place is None else (cursor_time(place[1]), place[2])
        rows = _ordered(session, where, RunRow.created_at, backward, at, paging.limit + 1)
        shown, cursor = paging.cut(rows, lambda row: (wanted.sort, row[0].created_at.isoformat(), row[0].id))
    else:
        rows = _by_score(session, where, backward, place, paging.limit + 1)
        shown, cursor = paging.cut(rows, lambda row: (wanted.sort, row[0].score, row[0].id))
    return [run_view(row, name or "", job) for row, name, job in shown], cursor


def conditions(session: Session, caller: Caller, wanted: Wanted) -> list[_Condition]:
    """Return the conditions of a query.

    Raises:
        Problem: A label is malformed, or there is no such project.
    """
    found: list[_Condition] = []
    if wanted.project is not None:
        found.append(RunRow.project_id == visible_project(session, caller, wanted.project).id)
    elif not caller.all_projects:
        found.append(_one_of(RunRow.project_id, sorted(caller.projects)))
    for column, value in (
        (RunRow.task, wanted.task),
        (RunRow.agent, wanted.agent),
        (RunRow.cause, wanted.cause),
        (RunRow.medal, wanted.medal),
        (RunRow.verdict, wanted.verdict),
        (RunRow.experiment_id, wanted.experiment),
    ):
        if value is not None:
            found.append(column == value)
    if wanted.statuses:
        found.append(_one_of(RunRow.status, list(dict.fromkeys(wanted.statuses))))
    for label in wanted.labels:
        name, colon, value = label.partition(":")
        if not colon:
            raise Problem("invalid", f"The label {label[:200]!r} has no value.", hint="Use label=NAME:VALUE.")
        having = select(RunLabel.run_id).where(RunLabel.name == name, RunLabel.value == value)
        found.append(RunRow.id.in_(having))
    if wanted.after is not None:
        found.append(RunRow.created_at > _utc(wanted.after))
    if wanted.before is not None:
        found.append(RunRow.created_at < _utc(wanted.before))
    return found


def shown_runs() -> Select[RunRow, str, Job]:
    """Select runs with their users' names and their jobs. Outer joins keep the runs first in every query plan."""
    columns = [column for column in RunRow.__mapper__.column_attrs if column.key not in _NOT_SHOWN]
    return (
        select(RunRow, User.name, Job)
        .outerjoin(User, User.id == RunRow.user_id)
        .outerjoin(Job, Job.id == RunRow.id)
        .options(
            load_only(*(getattr(RunRow, column.key) for column in columns), raiseload=True),
            load_only(Job.id, Job.state, Job.waiting_for, raiseload=True),
        )
    )


def _ordered(
    session: Session,
    where: Sequence[_Condition],
    column: InstrumentedAttribute[Any],
    backward: bool,
    at: tuple[Any, str] | None,
    limit: int,
) -> Sequence[_Shown]:
    query = shown_runs().where(*where).limit(limit)
    pair = tuple_(column, RunRow.id)
    if backward:
        query = query.order_by(column.desc(), RunRow.id.desc())
        query = query if at is None else query.where(pair < at)
    else:
        query = query.order_by(column, RunRow.id)
        query = query if at is None else query.where(pair > at)
    return session.execute(query).all()


def _by_score(
    session: Session, where: Sequence[_Condition], backward: bool, place: list[Any] | None, limit: int
) -> Sequence[_Shown]:
    """Return runs with a score first, then the others, each by its index: databases order NULL differently."""
    rows: list[_Shown] = []
    if place is None or place[1] is not None:
        at = None if place is None else (_number(place[1]), place[2])
        rows += _ordered(session, [*where, RunRow.score.is_not(None)], RunRow.score, backward, at, limit)
    if len(rows) < limit:
        query = shown_runs().where(*where, RunRow.score.is_(None)).order_by(RunRow.id.desc()).limit(limit - len(rows))
        if place is not None and place[1] is None:
            query = query.where(RunRow.id < place[2])
        rows += session.execute(query).all()
    return rows


def _one_of(column: InstrumentedAttribute[str], values: Sequence[str]) -> _Condition:
    """Use equality for a single value: then an index gives the order too."""
    if not values:
        return false()
    return column == values[0] if len(values) == 1 else column.in_(values)


def cursor_time(value: Any) -> datetime:
    """Return a time from a cursor.

    Raises:
        Problem: It is not a time.
    """
    try:
        return _utc(datetime.fromisoformat(value))
    except (TypeError, ValueError):
        raise bad_cursor() from None


def _number(value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        raise bad_cursor()
    return float(value)


def _utc(time: datetime) -> datetime:
    """Interpret times without a zone as UTC."""
    try:
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except OverflowError:
        raise Problem("invalid", "The time is out of range.", hint="Use ISO 8601, like 2026-01-31T12:00:00Z.") from None
