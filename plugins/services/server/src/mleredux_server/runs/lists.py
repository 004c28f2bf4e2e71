"""Lists of runs: filters, order and pages. Every order has an index, and each page begins where the last one ended."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

from fastapi import Query
from mleredux.models.verdict import VerdictStatus
from mleredux.plugin.artifact import Cause, State
from mleredux_http_api import RunView
from sqlalchemy import ColumnElement, Select, false, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session, load_only

from mleredux_server.accounts.accounts import visible_project
from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import Job, RunLabel, RunRow, User
from mleredux_server.protocol.problems import Problem
from mleredux_server.runs.views import run_view
from mleredux_server.schemas.pages import Paging, bad_cursor

Word = Annotated[str | None, Query(max_length=512)]
Sort = Literal["-created_at", "created_at", "-score", "score"]
_Condition = ColumnElement[bool]
_NOT_SHOWN = {"request", "log_bytes"}


@dataclass(frozen=True)
class Wanted:
    """Query parameters of a list of runs, as a dependency: filters and order.

    Attributes:
        labels: Labels as `name:value`, which must all match.
        after, before: Exclusive bounds of `created_at`.
    """

    task: Word = None
    agent: Word = None
    statuses: Annotated[
        list[State | Literal["preempted"]] | None, Query(alias="status", max_length=20, description="Any of these.")
    ] = None
    cause: Cause | None = None
    medal: Literal["gold", "silver", "bronze"] | None = None
    verdict: VerdictStatus | None = None
    project: Annotated[str | None, Query(max_length=512, description="Id or name.")] = None
    experiment: Word = None
    ids: Annotated[list[str] | None, Query(alias="id", max_length=200, description="Any of these.")] = None
    labels: Annotated[
        list[Annotated[str, Query(max_length=257)]] | None,
        Query(alias="label", max_length=32, description="`name:value`; all of these."),
    ] = None
    after: Annotated[datetime | None, Query(alias="created_after")] = None
    before: Annotated[datetime | None, Query(alias="created_before")] = None
    sort: Annotated[Sort, Query(description="Runs without a score come last in both directions.")] = "-created_at"


def runs_page(session: Session, caller: Caller, wanted: Wanted, paging: Paging) -> tuple[list[RunView], str | None]:
    """Return a page of runs visible to the caller, and the next cursor.

    Raises:
        Problem: A filter or the cursor is malformed, or there is no such project.
    """
    where = conditions(session, caller, wanted)
    column = getattr(RunRow, wanted.sort.removeprefix("-"))
    place = paging.place(str, object, str)
    if place is not None and place[0] != wanted.sort:
        raise bad_cursor()
    at = None if place is None else (cursor_value(column, place[1]), place[2])
    rows = in_order(session, shown_runs().where(*where), column, wanted.sort[0] == "-", at, paging.limit + 1)
    shown, cursor = paging.cut(rows, lambda row: (wanted.sort, json_value(getattr(row[0], column.key)), row[0].id))
    return [run_view(row, name or "", job) for row, name, job in shown], cursor


def conditions(session: Session, caller: Caller, wanted: Wanted) -> list[_Condition]:
    """Return the conditions of a query.

    Raises:
        Problem: A label is malformed, or there is no such project.
    """
    chosen = [*of_project(session, caller, RunRow.project_id, wanted.project)]
    equal = ((name, getattr(wanted, name)) for name in ("task", "agent", "cause", "medal", "verdict", "experiment"))
    chosen += [column_named(name) == value for name, value in equal if value is not None]
    if wanted.ids is not None:
        chosen.append(RunRow.id.in_(wanted.ids))
    if wanted.statuses:
        chosen.append(one_of(RunRow.status, list(dict.fromkeys(map(str, wanted.statuses)))))
    for label in wanted.labels or ():
        name, colon, value = label.partition(":")
        if not colon:
            raise Problem("invalid", f"The label {label[:200]!r} has no value.", hint="Use label=NAME:VALUE.")
        having = select(RunLabel.run_id).where(RunLabel.name == name, RunLabel.value == value)
        chosen.append(RunRow.id.in_(having))
    if wanted.after is not None:
        chosen.append(RunRow.created_at > utc(wanted.after))
    if wanted.before is not None:
        chosen.append(RunRow.created_at < utc(wanted.before))
    return chosen


def column_named(name: str) -> InstrumentedAttribute[Any]:
    """Return a column of runs by the name of a field."""
    return cast("InstrumentedAttribute[Any]", getattr(RunRow, "experiment_id" if name == "experiment" else name))


def shown_runs() -> Select[RunRow, str, Job]:
    """Select runs with their users' names and their jobs. Outer joins make every query plan start with the runs."""
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


def in_order(
    session: Session,
    query: Select[*tuple[Any, ...]],
    column: InstrumentedAttribute[Any],
    backward: bool,
    at: tuple[Any, str] | None,
    limit: int,
) -> Sequence[Any]:
    """Return rows of runs ordered by a column and by id, with rows without a value last.

    Rows with a value and those without are queried separately, each by its index, since databases order NULL
    differently.

    Args:
        session: A session for reading.
        query: Selects from `RunRow`.
        column: A column of `RunRow`.
        backward: Whether the order is descending.
        at: Value and id of the previous row.
        limit: Maximum number of rows.
    """

    def part(having: _Condition | None, *keys: Any, after: tuple[Any, ...] | None) -> Sequence[Any]:
        statement = query if having is None else query.where(having)
        statement = statement.order_by(*(key.desc() if backward else key for key in keys)).limit(limit - len(rows))
        if after is not None:
            statement = statement.where(tuple_(*keys) < after if backward else tuple_(*keys) > after)
        return session.execute(statement).all()

    nullable, rows = column.property.columns[0].nullable, list[Any]()
    if at is None or at[0] is not None:
        rows += part(column.is_not(None) if nullable else None, column, RunRow.id, after=at)
    if nullable and len(rows) < limit:
        rows += part(column.is_(None), RunRow.id, after=(at[1],) if at and at[0] is None else None)
    return rows


def one_of(column: InstrumentedAttribute[str], values: Sequence[str]) -> _Condition:
    """Return the condition for any of these values; a single one uses equality, so that an index gives the order."""
    if not values:
        return false()
    return column == values[0] if len(values) == 1 else column.in_(values)


def visible_to(caller: Caller, column: InstrumentedAttribute[str]) -> Sequence[_Condition]:
    """Return the conditions for rows of projects that the caller can see; none if they can see all."""
    return () if caller.all_projects else (one_of(column, sorted(caller.projects)),)


def of_project(
    session: Session, caller: Caller, column: InstrumentedAttribute[str], project: str | None
) -> Sequence[_Condition]:
    """Return the conditions for rows of a project, by default of all projects that the caller can see.

    Raises:
        Problem: The caller can see no such project.
    """
    return visible_to(caller, column) if project is None else (column == visible_project(session, caller, project).id,)


def json_value(value: Any) -> Any:
    """Convert a value of a row to the form used in cursors."""
    return value.isoformat() if isinstance(value, datetime) else value


def cursor_value(column: InstrumentedAttribute[Any], value: Any) -> Any:
    """Return a value of a column from a cursor.

    Raises:
        Problem: The cursor contains no value of the column.
    """
    kind = column.property.columns[0].type.python_type
    if value is None and column.property.columns[0].nullable:
        return None
    if kind is datetime:
        return cursor_time(value)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or (kind is float and not math.isfinite(value)):
        raise bad_cursor()
    return value


def cursor_time(value: Any) -> datetime:
    """Return a time from a cursor.

    Raises:
        Problem: The cursor contains no time.
    """
    try:
        return utc(datetime.fromisoformat(value))
    except (TypeError, ValueError):
        raise bad_cursor() from None


def utc(time: datetime) -> datetime:
    """Convert a time to UTC; a time without a zone is in UTC.

    Raises:
        Problem: The time is out of range.
    """
    try:
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except OverflowError:
        raise Problem("invalid", "The time is out of range.", hint="Use ISO 8601, like 2026-01-31T12:00:00Z.") from None
