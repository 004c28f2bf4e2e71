"""`/v1/me`: the authenticated user and their permissions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from sqlalchemy import select

from mleredux_server.accounts import default_project
from mleredux_server.database.tables import Project, Token
from mleredux_server.schemas.accounts import Me, UserView
from mleredux_server.security import Caller, authenticate
from mleredux_server.service import service_of
from mleredux_server.views import project_view, token_view

router = APIRouter(prefix="/v1/me", tags=["accounts"])


@router.get("")
def get_me(caller: Annotated[Caller, Depends(authenticate)], request: Request) -> Me:
    """Get the token's user and scopes, and the projects it is valid for."""
    with service_of(request).database.reading() as session:
        token = session.scalars(select(Token).where(Token.id == caller.token_id)).one()
        mine = default_project(session, caller)
        rows = session.scalars(select(Project).where(Project.id.in_(caller.projects)).order_by(Project.name)).all()
        projects = [project_view(session, row, caller) for row in rows]
    return Me(
        user=UserView(id=caller.user_id, name=caller.user_name, admin=caller.admin),
        token=token_view(token, caller.user_name),
        projects=projects,
        default_project=mine.id if mine is not None else None,
    )
