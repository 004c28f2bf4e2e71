"""Making users, projects and tokens; the only place that does."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from mleredux_server.database.tables import Member, Project, Token, User
from mleredux_server.identity import hash_of, new_id, new_token
from mleredux_server.problems import Problem, not_found
from mleredux_server.schemas.accounts import Quota
from mleredux_server.security import SCOPES, Caller

TRUSTED = Quota(queued_runs=None, sandboxes=None, networks=["none", "gateway", "open"])
"""Of whoever runs the service."""


def make_user(session: Session, name: str, *, admin: bool = False, quota: Quota | None = None) -> User:
    """A user with a project of their own, of the same name.

    Raises:
        Problem: The name is taken.
    """
    if session.scalar(select(User).where(User.name == name)):
        raise Problem("conflict", f"There is a user {name!r} already.")
    user = User(id=new_id("usr"), name=name, admin=admin)
    session.add(user)
    session.flush()
    make_project(session, name, user, quota or (TRUSTED if admin else Quota()))
    return user


def make_project(session: Session, name: str, owner: User, quota: Quota) -> Project:
    """A project that a user owns.

    Raises:
        Problem: The name is taken.
    """
    if session.scalar(select(Project).where(Project.name == name)):
        raise Problem("conflict", f"There is a project {name!r} already.")
    project = Project(id=new_id("prj"), name=name, quota=quota.model_dump(mode="json"))
    session.add(project)
    session.flush()
    session.add(Member(project_id=project.id, user_id=owner.id, role="owner"))
    return project


def make_token(
    session: Session,
    user: User,
    name: str,
    scopes: list[str],
    *,
    project_id: str | None = None,
    expires_at: datetime | None = None,
    value: str | None = None,
) -> tuple[Token, str]:
    """A token of a user.

    Args:
        session: To be committed by the caller.
        user: Whose it is.
        name: What it is for.
        scopes: Of `SCOPES`.
        project_id: Where it is good for one project only.
        expires_at: When it ends.
        value: The token itself, where it was chosen by somebody.

    Returns:
        What is kept of it, and the token itself, which is not kept.
    """
    assert set(scopes) <= set(SCOPES)
    said = value or new_token()
    token = Token(
        id=new_id("tok"),
        user_id=user.id,
        project_id=project_id,
        name=name,
        hash=hash_of(said),
        scopes=sorted(set(scopes)),
        expires_at=expires_at,
    )
    session.add(token)
    return token, said


def default_project(session: Session, caller: Caller) -> Project | None:
    """Where a caller's things are made if they name no project: in the one of their own name, else in their oldest."""
    found: Project | None = session.scalar(
        select(Project)
        .join(Member, Member.project_id == Project.id)
        .where(Project.id.in_(caller.projects), Member.user_id == caller.user_id)
        .order_by((Project.name == caller.user_name).desc(), Project.created_at, Project.id)
        .limit(1)
    )
    return found


def visible_project(session: Session, caller: Caller, asked: str) -> Project:
    """A project by its id or name.

    Raises:
        Problem: There is none that the caller may see.
    """
    found: Project | None = session.scalar(select(Project).where((Project.id == asked) | (Project.name == asked)))
    if found is None or not caller.sees(found.id):
        raise not_found("project", asked)
    return found
