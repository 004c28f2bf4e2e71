"""Operations that the operator of a server performs directly on its database; the audit log names no user for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from mleredux.errors import MlereduxError, NotFound
from mleredux_http_api import TokenView, UserView
from sqlalchemy import select
from sqlalchemy.orm import Session

from mleredux_server.accounts import accounts
from mleredux_server.database.tables import Identity, Member, Project, Token, User, now
from mleredux_server.operations.audit import Changes, changes
from mleredux_server.runs.admission import usage_of
from mleredux_server.runs.views import as_view
from mleredux_server.schemas.accounts import ProjectRequest, TokenRequest, UserRequest
from mleredux_server.schemas.body import checked

_HINT = "See `mleredux server --help`."


class Administration:
    """Users, tokens and projects, as records.

    Args:
        session: The session that reads or changes them; its owner commits it.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    def create_token(
        self, user: str, name: str, scopes: Sequence[str], expires: float | None, project: str | None
    ) -> tuple[dict[str, Any], str]:
        """Create a token; return its record and the token itself."""
        owner = self._user(user)
        chosen = scopes or (("admin",) if owner.admin and project is None else ("read", "run", "grade"))
        wanted = checked(TokenRequest, _HINT, name=name, scopes=list(chosen), expires_in=expires)
        if "admin" in chosen and (not owner.admin or project is not None):
            raise MlereduxError("Only admins' tokens without a project can have the scope admin.")
        bound = self._project(project) if project is not None else None
        if bound is not None and self.session.get(Member, (bound.id, owner.id)) is None:
            raise MlereduxError(f"User {owner.name} is not a member of project {bound.name}.")
        ends, home = now() + timedelta(seconds=expires) if expires else None, bound.id if bound else None
        row, token = accounts.make_token(
            self.session, owner, wanted.name, list(chosen), project_id=home, expires_at=ends
        )
        self._note("token.create", row.id)
        return as_view(TokenView, row, user=owner.name).model_dump(mode="json"), token

    def tokens(self, user: str | None) -> list[dict[str, Any]]:
        """Return the tokens of a user, or of all, that are not revoked."""
        query = select(Token, User.name).join(User, User.id == Token.user_id).where(Token.revoked_at.is_(None))
        if user is not None:
            query = query.where(Token.user_id == self._user(user).id)
        rows = self.session.execute(query.order_by(User.name, Token.created_at))
        return [as_view(TokenView, row, user=name).model_dump(mode="json") for row, name in rows]

    def revoke_token(self, token_id: str) -> None:
        """Revoke a token."""
        token = self.session.get(Token, token_id)
        if token is None or token.revoked_at is not None:
            raise NotFound(f"Token {token_id!r} not found.", hint="See `mleredux server token list`.")
        token.revoked_at = now()
        self._note("token.revoke", token.id)

    def create_user(self, name: str, admin: bool) -> dict[str, Any]:
        """Create a user with their own project."""
        wanted = checked(UserRequest, _HINT, name=name, admin=admin)
        return self._changed(accounts.make_user(self.session, wanted.name, admin=wanted.admin), "user.create")

    def users(self) -> list[dict[str, Any]]:
        """Return all users by name."""
        rows = self.session.scalars(select(User).order_by(User.name))
        return [as_view(UserView, row).model_dump(mode="json") for row in rows]

    def disable_user(self, name: str) -> dict[str, Any]:
        """Disable a user, and revoke their tokens."""
        user = self._user(name)
        accounts.disable_user(self.session, user)
        return self._changed(user, "user.disable")

    def enable_user(self, name: str) -> dict[str, Any]:
        """Enable a disabled user."""
        user = self._user(name)
        user.disabled_at = None
        return self._changed(user, "user.enable")

    def link_user(self, name: str, issuer: str, subject: str, *, remove: bool) -> dict[str, Any]:
        """Link a user to an account at an OpenID provider, or remove the link."""
        user, known = self._user(name), self.session.get(Identity, (issuer, subject))
        if not remove:
            accounts.link_identity(self.session, user, issuer, subject)
        elif known is not None and known.user_id == user.id:
            self.session.delete(known)
        else:
            raise NotFound(f"{subject} at {issuer} is not linked to {name}.", hint="The Server page lists accounts.")
        record = self._changed(user, "user.unlink" if remove else "user.link")
        return {**record, "issuer": issuer, "subject": subject}

    def create_project(self, name: str, owner: str) -> dict[str, Any]:
        """Create a project with the default quota."""
        wanted = checked(ProjectRequest, _HINT, name=name)
        project = accounts.make_project(self.session, wanted.name, self._user(owner), accounts.default_quota())
        self._note("project.create", project.id)
        return self._record(project)

    def projects(self) -> list[dict[str, Any]]:
        """Return all projects by name, with their members, quotas and usage."""
        return [self._record(row) for row in self.session.scalars(select(Project).order_by(Project.name))]

    def project(self, name: str) -> dict[str, Any]:
        """Return a project by id or name."""
        return self._record(self._project(name))

    def set_quota(self, name: str, changes: Sequence[str]) -> dict[str, Any]:
        """Change a project's quota, for example with `concurrent_runs=4 memory_mb=none`."""
        change, project = accounts.read_quota(changes), self._project(name)
        accounts.set_quota(project, change)
        self._note("project.quota", f"{project.id} {change.model_dump_json(exclude_unset=True)}")
        return self._record(project)

    def changes(self, user: str | None, action: str | None, since: float | None, limit: int) -> list[dict[str, Any]]:
        """Return the newest changes in the audit log, or only those of a user, of a kind or of the last seconds."""
        after = now() - timedelta(seconds=since) if since is not None else None
        wanted = Changes(user=user, action=action, after=after)
        return [change.model_dump(mode="json") for change in changes(self.session, wanted, limit)]

    def _note(self, action: str, target: str) -> None:
        """Record a change in the audit log, and send all changes to the database."""
        accounts.note(self.session, None, action, target)
        self.session.flush()

    def _changed(self, user: User, action: str) -> dict[str, Any]:
        """Record a change of a user in the audit log; return the changed user's record."""
        self._note(action, user.id)
        return as_view(UserView, user).model_dump(mode="json")

    def _user(self, name: str) -> User:
        """Return a user by id or name."""
        user = accounts.find_user(self.session, name)
        if user is None:
            raise NotFound(f"User {name!r} not found.", hint="See `mleredux server user list`.")
        return user

    def _project(self, name: str) -> Project:
        """Return a project by id or name."""
        project = self.session.scalar(select(Project).where((Project.name == name) | (Project.id == name)))
        if project is None:
            raise NotFound(f"Project {name!r} not found.", hint="See `mleredux server project list`.")
        return project

    def _record(self, row: Project) -> dict[str, Any]:
        members = select(User.name, Member.role).join(Member, Member.user_id == User.id)
        members = members.where(Member.project_id == row.id).order_by(User.name)
        return {
            "id": row.id,
            "name": row.name,
            "members": {str(name): str(role) for name, role in self.session.execute(members)},
            "quota": row.quota,
            "usage": usage_of(self.session, row).model_dump(),
            "created_at": row.created_at.isoformat(),
        }
