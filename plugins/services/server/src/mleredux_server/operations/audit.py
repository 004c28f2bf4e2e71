"""Read the audit log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from mleredux_server.database.tables import Audit, User
from mleredux_server.runs.lists import Word, utc
from mleredux_server.schemas.accounts import AuditView


@dataclass(frozen=True)
class Changes:
    """Query parameters of the audit log, as a dependency: filters for changes.

    Attributes:
        user: Name or id of the user who made them.
        action: An action, or its part before the dot.
        target: Id of the changed resource, or its beginning.
        after, before: Exclusive bounds of the time.
    """

    user: Word = None
    action: Annotated[str | None, Query(max_length=64, description="`token.create`, or `token` for all such.")] = None
    target: Word = None
    after: datetime | None = None
    before: datetime | None = None


def changes(session: Session, wanted: Changes, limit: int, *, below: int | None = None) -> list[AuditView]:
    """Return changes, newest first.

    Args:
        below: Only changes with smaller ids, for the next page.
    """
    query = select(Audit, User.name).outerjoin(User, User.id == Audit.user_id).order_by(Audit.id.desc()).limit(limit)
    tests: list[tuple[Any, Callable[[Any], ColumnElement[bool]]]] = [
        (wanted.user, lambda name: (User.name == name) | (Audit.user_id == name)),
        (wanted.action, lambda name: (Audit.action == name) | Audit.action.startswith(f"{name}.", autoescape=True)),
        (wanted.target, lambda start: Audit.target.startswith(start, autoescape=True)),
        (wanted.after, lambda time: Audit.time > utc(time)),
        (wanted.before, lambda time: Audit.time < utc(time)),
        (below, lambda number: Audit.id < number),
    ]
    query = query.where(*(test(value) for value, test in tests if value is not None))
    return [
        AuditView(id=row.id, time=row.time, user=name, token=row.token_id, action=row.action, target=row.target)
        for row, name in session.execute(query)
    ]
