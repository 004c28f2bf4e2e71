"""Read the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Query
from sqlalchemy import select
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
    if wanted.user is not None:
        query = query.where((User.name == wanted.user) | (Audit.user_id == wanted.user))
    if wanted.action is not None:
        query = query.where(
            (Audit.action == wanted.action) | Audit.action.startswith(f"{wanted.action}.", autoescape=True)
        )
    if wanted.target is not None:
        query = query.where(Audit.target.startswith(wanted.target, autoescape=True))
    if wanted.after is not None:
        query = query.where(Audit.time > utc(wanted.after))
    if wanted.before is not None:
        query = query.where(Audit.time < utc(wanted.before))
    if below is not None:
        query = query.where(Audit.id < below)
    return [
        AuditView(id=row.id, time=row.time, user=name, token=row.token_id, action=row.action, target=row.target)
        for row, name in session.execute(query)
    ]
