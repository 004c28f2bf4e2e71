"""`/v1/audit`: the audit log; for admins."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request

from mleredux_server.accounts.security import Admin
from mleredux_server.operations.audit import Changes, changes
from mleredux_server.runs.lists import utc
from mleredux_server.schemas.accounts import AuditView
from mleredux_server.schemas.pages import Page, Pages
from mleredux_server.service import service_of

router = APIRouter(prefix="/v1/audit", tags=["accounts"])

Word = Annotated[str | None, Query(max_length=512)]


@router.get("")
def list_changes(
    _caller: Admin,
    request: Request,
    paging: Pages,
    user: Word = None,
    action: Annotated[str | None, Query(max_length=64, description="`token.create`, or `token` for all such.")] = None,
    target: Word = None,
    after: datetime | None = None,
    before: datetime | None = None,
) -> Page[AuditView]:
    """List changes, newest first: who did what to what."""
    place = paging.place(int)
    since, until = (None if time is None else utc(time) for time in (after, before))
    wanted = Changes(user=user, action=action, target=target, after=since, before=until)
    with service_of(request).database.reading() as session:
        found = changes(session, wanted, paging.limit + 1, below=place[0] if place else None)
    shown, cursor = paging.cut(found, lambda one: one.id)
    return Page[AuditView](items=list(shown), next=cursor)
