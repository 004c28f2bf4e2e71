"""Create, look up and change users, projects and tokens. Only this module does so."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from itertools import count
from typing import Any, cast

from mleredux.errors import MlereduxError
from sqlalchemy import Select, func, or_, select, update
from sqlalchemy.orm import Session

from mleredux_server.accounts.identity import SCOPES, hash_of, new_id, new_token
from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import Audit, Identity, Member, Project, Token, User, now
from mleredux_server.protocol.problems import Problem, not_found
from mleredux_server.schemas.accounts import Quota
from mleredux_server.schemas.body import checked

TRUSTED = Quota(queued_runs=None, sandboxes=None, networks=["none", "gateway", "open"])
"""The label of changes made by the server administrator."""
QUOTA_VARIABLE = "MLEREDUX_DEFAULT_QUOTA"
MOST_TOKENS = 100
"""Maximum number of valid tokens of a user."""


def read_quota(words: Iterable[str]) -> Quota:
    """Parse a quota from `FIELD=VALUE` words, such as `cpus=8 memory_mb=none sandboxes=isolated,process`.

    Raises:
        MlereduxError: A word, a field or a value is not valid.
    """
    changes: dict[str, Any] = {}
    for word in words:
        field, equals, value = word.partition("=")
        if not equals:
            raise MlereduxError(f"{word!r} is not of the form FIELD=VALUE.", hint="Use cpus=8 or cpus=none.")
        several = [part for part in value.split(",") if part] if field in ("sandboxes", "networks") else value
        changes[field] = None if value == "none" else several
    return checked(Quota, f"The fields are {', '.join(Quota.model_fields)}.", **changes)


def default_quota() -> Quota:
    """Return the quota of new projects, from MLEREDUX_DEFAULT_QUOTA, which `serve --default-quota` sets."""
    return read_quota(os.environ.get(QUOTA_VARIABLE, "").split())


def make_service_account(session: Session, name: str, project: Project) -> User:
    """Create a service account: a user that is a program, and a member of one project.

    Raises:
        Problem: The name is already in use.
    """
    user = _add_user(session, name, service=True)
    session.add(Member(project_id=project.id, user_id=user.id, role="member"))
    return user


def make_user(session: Session, name: str, *, admin: bool = False, quota: Quota | None = None) -> User:
    """Create a user with their own project, of the same name if it is available.

    Raises:
        Problem: The name is already in use.
    """
    user = _add_user(session, name, admin=admin)
    names = (name if number == 1 else f"{name[:56]}-{number}" for number in count(1))
    free = next(other for other in names if not _project_named(session, other))
    make_project(session, free, user, quota or (TRUSTED if admin else default_quota()))
    return user


def _add_user(session: Session, name: str, **kind: bool) -> User:
    if session.scalar(select(User).where(User.name == name)):
        raise Problem("conflict", f"User {name!r} already exists.")
    user = User(id=new_id("usr"), name=name, **kind)
    session.add(user)
    session.flush()
    return user


def make_project(session: Session, name: str, owner: User, quota: Quota) -> Project:
    """Create a project owned by a user.

    Raises:
        Problem: The name is already in use.
    """
    if _project_named(session, name):
        raise Problem("conflict", f"Project {name!r} already exists.")
    project = Project(id=new_id("prj"), name=name, quota=quota.model_dump(mode="json"))
    session.add(project)
    session.flush()
    session.add(Member(project_id=project.id, user_id=owner.id, role="owner"))
    return project


def _project_named(session: Session, name: str) -> bool:
    return session.scalar(select(Project.id).where(Project.name == name)) is not None


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
    """Create a token for a user.

    Args:
        session: Committed by the caller.
        user: The token's owner.
        name: Its purpose.
        scopes: Values of `SCOPES`.
        project_id: The only project it is valid for; None for all of the user's projects.
        expires_at: When the token expires.
        value: The token itself, if it was chosen in advance.

    Returns:
        The stored record, and the token itself, which is not stored.

    Raises:
        Problem: The user has too many valid tokens.
    """
    assert set(scopes) <= set(SCOPES)
    ends = or_(Token.expires_at.is_(None), Token.expires_at > now())
    valid = select(func.count()).where(Token.user_id == user.id, Token.revoked_at.is_(None), ends)
    if (session.scalar(valid) or 0) >= MOST_TOKENS:
        raise Problem("conflict", f"User {user.name} has {MOST_TOKENS} valid tokens.", hint="Revoke some of them.")
    secret = value or new_token()
    token = Token(
        id=new_id("tok"),
        user_id=user.id,
        project_id=project_id,
        name=name,
        hash=hash_of(secret),
        scopes=sorted(set(scopes)),
        expires_at=expires_at,
    )
    session.add(token)
    return token, secret


def note(session: Session, caller: Caller | None, action: str, target: str) -> None:
    """Write a change to the audit log; a caller of None means the command line."""
    who = {"user_id": caller.user_id, "token_id": caller.token_id} if caller else {}
    session.add(Audit(**who, action=action, target=target))


def find_user(session: Session, name_or_id: str) -> User | None:
    """Return a user by id or name."""
    return cast("User | None", session.scalar(select(User).where((User.id == name_or_id) | (User.name == name_or_id))))


def link_identity(session: Session, user: User, issuer: str, subject: str) -> None:
    """Let an account at an OpenID provider sign in as a user, replacing any earlier link."""
    identity = session.get(Identity, (issuer, subject)) or Identity(issuer=issuer, subject=subject)
    identity.user_id = user.id
    session.add(identity)


def disable_user(session: Session, user: User) -> None:
    """Disable a user; everything that the user created remains.

    Raises:
        Problem: The user is the last admin.
    """
    if user.admin:
        query = select(User.id).where(User.admin, User.disabled_at.is_(None)).with_for_update()
        if set(session.scalars(query)) <= {user.id}:
            raise Problem("conflict", f"User {user.name} is the last admin.", hint="Make another user an admin first.")
    user.disabled_at = user.disabled_at or now()
    session.execute(update(Token).where(Token.user_id == user.id, Token.revoked_at.is_(None)).values(revoked_at=now()))


def live_tokens(caller: Caller) -> Select[Token, str]:
    """Select the tokens that a caller may list and that are not revoked, with their users' names: the caller's own or,
    for an admin, those of all users."""
    query = select(Token, User.name).join(User, User.id == Token.user_id).where(Token.revoked_at.is_(None))
    if not caller.all_projects:
        query = query.where(Token.user_id == caller.user_id)
    return query if caller.bound_to is None else query.where(Token.project_id == caller.bound_to)


def set_quota(project: Project, change: Quota) -> None:
    """Change the given fields of a quota."""
    named = {name: getattr(change, name) for name in change.model_fields_set}
    before = Quota.model_validate(project.quota).model_dump()
    project.quota = Quota.model_validate({**before, **named}).model_dump(mode="json")


def set_member(session: Session, project: Project, user: User, role: str | None) -> None:
    """Give a user a role in a project; None removes the user from it.

    Raises:
        Problem: No owner would remain.
    """
    session.refresh(project, with_for_update=True)
    member = session.get(Member, (project.id, user.id))
    if member is not None and member.role == "owner" and role != "owner":
        others = select(Member.user_id).where(Member.project_id == project.id, Member.role == "owner")
        if session.scalar(others.where(Member.user_id != user.id).limit(1)) is None:
            hint = "Make another user an owner first."
            raise Problem("conflict", f"User {user.name} is the last owner of the project.", hint=hint)
    if role is None:
        if member is not None:
            session.delete(member)
    elif member is None:
        session.add(Member(project_id=project.id, user_id=user.id, role=role))
    else:
        member.role = role


def check_owner(caller: Caller, project: str, what: str) -> None:
    """Raise a `Problem` unless the caller owns a project.

    Args:
        caller: The caller; admins need not be members.
        project: Id of the project.
        what: What the caller wants to change, for the message.
    """
    if not caller.all_projects and caller.projects.get(project) != "owner":
        raise Problem("forbidden", f"Only owners can change {what}.", hint="Ask an owner of the project.")


def default_project(session: Session, caller: Caller) -> Project | None:
    """Return the caller's default project: the one with the caller's own name, else the oldest."""
    project: Project | None = session.scalar(
        select(Project)
        .join(Member, Member.project_id == Project.id)
        .where(Project.id.in_(caller.projects), Member.user_id == caller.user_id)
        .order_by((Project.name == caller.user_name).desc(), Project.created_at, Project.id)
        .limit(1)
    )
    return project


def visible_project(session: Session, caller: Caller, name_or_id: str) -> Project:
    """Return a project by its id or name.

    Raises:
        Problem: The caller can see no such project.
    """
    query = select(Project).where((Project.id == name_or_id) | (Project.name == name_or_id))
    project: Project | None = session.scalar(query)
    if project is None or not caller.sees(project.id):
        raise not_found("project", name_or_id)
    return project
