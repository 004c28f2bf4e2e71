"""`/v1/me`, the authenticated user and their permissions; `/v1/users`, all users, for admins."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from mleredux_http_api import TokenView, UserView
from sqlalchemy import select
from sqlalchemy.orm import Session

from mleredux_server.accounts import accounts
from mleredux_server.accounts.accounts import note, visible_project
from mleredux_server.accounts.security import Admin, AnyCaller, Caller
from mleredux_server.database.tables import Project, Token, User
from mleredux_server.protocol.idempotency import Answer, claim_of
from mleredux_server.protocol.problems import Problem, not_found
from mleredux_server.runs.views import as_view, project_view
from mleredux_server.schemas.accounts import Me, UserRequest
from mleredux_server.schemas.pages import Page, Pages
from mleredux_server.service import Current

router = APIRouter(prefix="/v1/users", tags=["accounts"])
me = APIRouter(prefix="/v1/me", tags=["accounts"])


@me.get("")
def get_me(caller: AnyCaller, service: Current) -> Me:
    """Get the token's user and scopes, and the projects it is valid for."""
    with service.database.reading() as session:
        token = session.scalars(select(Token).where(Token.id == caller.token_id)).one()
        mine = accounts.default_project(session, caller)
        rows = session.scalars(select(Project).where(Project.id.in_(caller.projects)).order_by(Project.name)).all()
        projects = [project_view(session, row, caller) for row in rows]
    return Me(
        user=UserView(id=caller.user_id, name=caller.user_name, admin=caller.admin),
        token=as_view(TokenView, token, user=caller.user_name),
        projects=projects,
        default_project=mine.id if mine is not None else None,
    )


@router.post("", status_code=201, response_model=UserView)
def create_user(body: UserRequest, caller: Admin, request: Request, service: Current) -> Response:
    """Create a user with their own project; they have no token yet."""
    claim = claim_of(request, caller, body)
    with service.database.writing() as session:
        claim.take(session)
        if body.service:
            if body.admin or body.project is None:
                raise Problem("invalid", "A service account needs a project; it can't be admin.", hint="Set `project`.")
            home = visible_project(session, caller, body.project)
            user = accounts.make_service_account(session, body.name, home)
        elif body.project is not None:
            raise Problem("invalid", "Only service accounts are created in a project.", hint="Add people as members.")
        else:
            user = accounts.make_user(session, body.name, admin=body.admin)
        session.flush()
        note(session, caller, "user.create", user.id)
        answer = Answer(201, {"Location": f"/v1/users/{user.id}"}, as_view(UserView, user).model_dump_json())
        claim.keep(session, answer)
    return answer.response()


@router.get("")
def list_users(_caller: Admin, service: Current, paging: Pages) -> Page[UserView]:
    """List all users, in order of their names."""
    with service.database.reading() as session:
        rows = session.scalars(paging.in_order(select(User), User.name)).all()
    return paging.page(rows, lambda user: user.name, lambda user: as_view(UserView, user))


@router.get("/{user_id}")
def get_user(user_id: str, caller: AnyCaller, service: Current) -> UserView:
    """Get a user, by id or name; users can get themselves."""
    with service.database.reading() as session:
        return as_view(UserView, _visible(session, caller, user_id))


@router.delete("/{user_id}", status_code=204)
def remove_user(user_id: str, caller: Admin, request: Request, service: Current) -> None:
    """Disable a user; their tokens are revoked immediately, and their runs remain."""
    with service.database.writing() as session:
        user = _visible(session, caller, user_id)
        if user.disabled_at is not None:
            raise Problem("conflict", f"User {user.name} is already disabled.")
        accounts.disable_user(session, user)
        note(session, caller, "user.disable", user.id)
    request.app.state.tokens.forget()


@router.post("/{user_id}/enable")
def enable_user(user_id: str, caller: Admin, service: Current) -> UserView:
    """Enable a disabled user; their tokens stay revoked."""
    with service.database.writing() as session:
        user = _visible(session, caller, user_id)
        user.disabled_at = None
        note(session, caller, "user.enable", user.id)
        session.flush()
        return as_view(UserView, user)


def _visible(session: Session, caller: Caller, name_or_id: str) -> User:
    user = accounts.find_user(session, name_or_id)
    if user is None or not (caller.all_projects or user.id == caller.user_id):
        raise not_found("user", name_or_id)
    return user
