"""`/v1/projects`: members, roles and quotas."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from mleredux_server.accounts import accounts
from mleredux_server.accounts.accounts import note, visible_project
from mleredux_server.accounts.security import Admin, Caller, Keeper, Reader
from mleredux_server.database.tables import Project, User
from mleredux_server.protocol.idempotency import Answer, claim_of
from mleredux_server.protocol.problems import Problem, existing
from mleredux_server.runs.lists import visible_to
from mleredux_server.runs.views import project_view
from mleredux_server.schemas.accounts import Membership, ProjectChange, ProjectRequest, ProjectView
from mleredux_server.schemas.pages import Page, Pages
from mleredux_server.service import Current

router = APIRouter(prefix="/v1/projects", tags=["accounts"])


@router.post("", status_code=201, response_model=ProjectView)
def create_project(body: ProjectRequest, caller: Admin, request: Request, service: Current) -> Response:
    """Create a project. Admins only: otherwise, users could exceed their quotas by creating projects."""
    claim = claim_of(request, caller, body)
    with service.database.writing() as session:
        claim.take(session)
        project = accounts.make_project(
            session, body.name, session.get_one(User, caller.user_id), body.quota or accounts.default_quota()
        )
        session.flush()
        note(session, caller, "project.create", project.id)
        view = project_view(session, project, caller).model_copy(update={"role": "owner"})
        answer = Answer(201, {"Location": f"/v1/projects/{project.id}"}, view.model_dump_json())
        claim.keep(session, answer)
    request.app.state.tokens.forget()
    return answer.response()


@router.get("")
def list_projects(caller: Reader, service: Current, paging: Pages) -> Page[ProjectView]:
    """List the caller's projects by name; with an admin's token, all projects."""
    query = paging.in_order(select(Project).where(*visible_to(caller, Project.id)), Project.name)
    with service.database.reading() as session:
        rows = session.scalars(query).all()
        return paging.page(rows, lambda row: row.name, lambda row: project_view(session, row, caller))


@router.get("/{project_id}")
def get_project(project_id: str, caller: Reader, service: Current) -> ProjectView:
    """Get a project, by id or name, with its quota and current usage."""
    with service.database.reading() as session:
        return project_view(session, visible_project(session, caller, project_id), caller)


@router.patch("/{project_id}")
def change_project(project_id: str, body: ProjectChange, caller: Keeper, service: Current) -> ProjectView:
    """Rename a project (owners), or change its quota (admins)."""
    with service.database.writing() as session:
        project = _owned(session, caller, project_id)
        if body.quota is not None and not caller.all_projects:
            raise Problem("forbidden", "Only admins can change quotas.", hint="Ask an administrator for more.")
        if body.name is not None and body.name != project.name:
            if session.scalar(select(Project.id).where(Project.name == body.name)):
                raise Problem("conflict", f"Project {body.name!r} already exists.")
            note(session, caller, "project.rename", f"{project.id} {project.name} {body.name}")
            project.name = body.name
        if body.quota is not None:
            accounts.set_quota(project, body.quota)
            note(session, caller, "project.quota", f"{project.id} {body.quota.model_dump_json(exclude_unset=True)}")
        session.flush()
        return project_view(session, project, caller)


@router.put("/{project_id}/members/{user_id}", status_code=204)
def put_member(
    project_id: str, user_id: str, body: Membership, caller: Keeper, request: Request, service: Current
) -> None:
    """Add a user to a project, or change their role in it (owners)."""
    with service.database.writing() as session:
        project, user = _owned(session, caller, project_id), _user(session, caller, user_id)
        if user.disabled_at is not None:
            raise Problem("conflict", f"User {user.name} is disabled.")
        accounts.set_member(session, project, user, body.role)
        note(session, caller, "member.put", f"{project.id} {user.id} {body.role}")
    request.app.state.tokens.forget()


@router.delete("/{project_id}/members/{user_id}", status_code=204)
def remove_member(project_id: str, user_id: str, caller: Keeper, request: Request, service: Current) -> None:
    """Remove a user from a project (owners; users can remove themselves)."""
    with service.database.writing() as session:
        leaves = user_id == caller.user_id
        project = visible_project(session, caller, project_id) if leaves else _owned(session, caller, project_id)
        user = _user(session, caller, user_id)
        accounts.set_member(session, project, user, None)
        note(session, caller, "member.delete", f"{project.id} {user.id}")
    request.app.state.tokens.forget()


def _owned(session: Session, caller: Caller, name_or_id: str) -> Project:
    """Return a project that the caller may change; its row is locked if the database supports it."""
    project = visible_project(session, caller, name_or_id)
    accounts.check_owner(caller, project.id, f"project {project.name}")
    session.refresh(project, with_for_update=True)
    return project


def _user(session: Session, caller: Caller, name_or_id: str) -> User:
    """Return a user by id; by name for admins only, so that others can't guess names."""
    user = accounts.find_user(session, name_or_id) if caller.all_projects else session.get(User, name_or_id)
    return existing(user, "user", name_or_id)
