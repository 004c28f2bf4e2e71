"""`/v1/audit`: the audit log; for admins."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from mleredux_server.accounts.security import Admin
from mleredux_server.operations.audit import Changes, changes
from mleredux_server.schemas.accounts import AuditView
from mleredux_server.schemas.pages import Page, Pages
from mleredux_server.service import Current

router = APIRouter(prefix="/v1/audit", tags=["accounts"])


@router.get("")
def list_changes(
    _caller: Admin, service: Current, wanted: Annotated[Changes, Depends()], paging: Pages
) -> Page[AuditView]:
    """List changes, newest first, each with its user, action and target."""
    place = paging.place(int)
    with service.database.reading() as session:
        views = changes(session, wanted, paging.limit + 1, below=place[0] if place else None)
    return paging.page(views, lambda view: view.id, lambda view: view)
