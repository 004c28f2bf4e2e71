"""`mleredux server`: administer users, tokens and projects of a service directly in its database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click
from mleredux.errors import MlereduxError, NotFound
from mleredux.plugin.command import Duration, print_json, print_table
from sqlalchemy import select
from sqlalchemy.orm import Session

from mleredux_server.accounts import accounts
from mleredux_server.accounts.accounts import note
from mleredux_server.accounts.security import SCOPES
from mleredux_server.cli.care import audit, backup, downgrade, restore, retention, rotate_key
from mleredux_server.cli.context import Place, checked, placed, project_named, show_record, user_named
from mleredux_server.database.tables import Identity, Member, Project, Token, User, now
from mleredux_server.runs.admission import usage_of
from mleredux_server.runs.views import token_view, user_view
from mleredux_server.schemas.accounts import ProjectRequest, TokenRequest, UserRequest


@click.group("server")
def command() -> None:
    """Administer a service, even while it runs: users, tokens, projects, quotas, backups."""


@command.group()
def token() -> None:
    """Create, list and revoke tokens."""


@command.group()
def user() -> None:
    """Create, list, disable and enable users; link them to accounts at an OpenID provider."""


@command.group()
def project() -> None:
    """Create, list and show projects, and change their quotas."""


@command.command()
@placed
def migrate(at: Place) -> None:
    """Migrate the database; `serve` also does so when it starts."""
    with at.opened(migrate=True) as found:
        revision = found.revision()
        at.done({"database": found.shown, "revision": revision}, f"{found.shown} is at revision {revision}.")


for each in (downgrade, rotate_key, backup, restore, audit, retention):
    command.add_command(each)


@token.command("create")
@click.option("--user", "user_name", required=True, metavar="NAME", help="The token's owner.")
@click.option("--name", default="cli", show_default=True, help="Purpose of the token.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    help="Scope to grant; can be repeated.  [default: read, run, grade; admin for admins]",
)
@click.option("--expires", type=Duration(), metavar="TIME", help="Lifetime, e.g. 12h or 90d.  [default: no expiry]")
@click.option("--project", "project_name", metavar="NAME", help="Limit the token to this project.")
@placed
def create_token(
    at: Place, user_name: str, name: str, scopes: tuple[str, ...], expires: float | None, project_name: str | None
) -> None:
    """Create a token and print it; it is not shown again."""
    with at.writing() as session:
        owner = user_named(session, user_name)
        chosen = scopes or (("admin",) if owner.admin and project_name is None else ("read", "run", "grade"))
        asked = checked(TokenRequest, name=name, scopes=list(chosen), expires_in=expires)
        if "admin" in chosen and (not owner.admin or project_name is not None):
            raise MlereduxError("Only admins' tokens without a project can have the scope admin.")
        bound = project_named(session, project_name) if project_name is not None else None
        if bound is not None and session.get(Member, (bound.id, owner.id)) is None:
            raise MlereduxError(f"User {owner.name} is not a member of project {bound.name}.")
        ends, home = now() + timedelta(seconds=expires) if expires else None, bound.id if bound else None
        made, said = accounts.make_token(session, owner, asked.name, list(chosen), project_id=home, expires_at=ends)
        session.flush()
        note(session, None, "token.create", made.id)
        record = {**token_view(made, owner.name).model_dump(mode="json"), "token": said}
    if at.as_json:
        print_json(record)
        return
    click.echo(
        f"Token {record['id']} of {owner.name} ({', '.join(record['scopes'])}); store it now, it is only shown once:",
        err=True,
    )
    click.echo(said)


@token.command("list")
@click.option("--user", "user_name", metavar="NAME", help="Only tokens of this user.")
@placed
def list_tokens(at: Place, user_name: str | None) -> None:
    """List tokens that are not revoked."""
    query = select(Token, User.name).join(User, User.id == Token.user_id).where(Token.revoked_at.is_(None))
    with at.reading() as session:
        if user_name is not None:
            query = query.where(Token.user_id == user_named(session, user_name).id)
        rows = [
            token_view(row, name).model_dump(mode="json")
            for row, name in session.execute(query.order_by(User.name, Token.created_at))
        ]
    print_table(rows, ("id", "user", "name", "scopes", "project", "expires_at", "last_used_at"), as_json=at.as_json)


@token.command("revoke")
@click.argument("token_id", metavar="ID")
@placed
def revoke_token(at: Place, token_id: str) -> None:
    """Revoke a token; a running server applies this within five seconds."""
    with at.writing() as session:
        found = session.get(Token, token_id)
        if found is None or found.revoked_at is not None:
            raise NotFound(f"Token {token_id!r} not found.", hint="See `mleredux server token list`.")
        found.revoked_at = now()
        note(session, None, "token.revoke", found.id)
    at.done({"id": token_id, "revoked": True}, f"Revoked token {token_id}.")


@user.command("create")
@click.argument("name")
@click.option("--admin", is_flag=True, help="Grant all permissions.")
@placed
def create_user(at: Place, name: str, admin: bool) -> None:
    """Create a user with their own project."""
    asked = checked(UserRequest, name=name, admin=admin)
    with at.writing() as session:
        made = accounts.make_user(session, asked.name, admin=asked.admin)
        record = _noted(session, made, "user.create")
    at.done(record, f"Created user {name}. Next: mleredux server token create --user {name}")


@user.command("list")
@placed
def list_users(at: Place) -> None:
    """List users."""
    with at.reading() as session:
        rows = [user_view(row).model_dump(mode="json") for row in session.scalars(select(User).order_by(User.name))]
    print_table(rows, ("id", "name", "admin", "created_at", "disabled_at"), as_json=at.as_json)


@user.command("disable")
@click.argument("name")
@placed
def disable(at: Place, name: str) -> None:
    """Disable a user; their runs remain."""
    with at.writing() as session:
        found = user_named(session, name)
        accounts.disable_user(session, found)
        record = _noted(session, found, "user.disable")
    at.done(record, f"Disabled user {name}; their runs remain.")


@user.command("enable")
@click.argument("name")
@placed
def enable(at: Place, name: str) -> None:
    """Enable a disabled user; their tokens stay revoked."""
    with at.writing() as session:
        found = user_named(session, name)
        found.disabled_at = None
        record = _noted(session, found, "user.enable")
    at.done(record, f"Enabled user {name}. Next: mleredux server token create --user {name}")


@user.command("link")
@click.argument("name")
@click.option("--issuer", required=True, metavar="URL", help="Issuer of the OpenID provider (`iss`).")
@click.option("--subject", required=True, metavar="ID", help="The account there (`sub`).")
@click.option(
    "--remove", is_flag=True, help="Remove the link instead, so that the account no longer signs in as this user."
)
@placed
def link(at: Place, name: str, issuer: str, subject: str, remove: bool) -> None:
    """Let an account at an OpenID provider sign in as a user, even if it was linked to another one."""
    with at.writing() as session:
        found, known = user_named(session, name), session.get(Identity, (issuer, subject))
        if not remove:
            accounts.link_identity(session, found, issuer, subject)
        elif known is not None and known.user_id == found.id:
            session.delete(known)
        else:
            raise NotFound(f"{subject} at {issuer} is not linked to {name}.", hint="The Server page lists accounts.")
        noted = _noted(session, found, "user.unlink" if remove else "user.link")
        record = {**noted, "issuer": issuer, "subject": subject}
    at.done(record, f"{subject} at {issuer} {'no longer signs' if remove else 'signs'} in as {name}.")


@project.command("create")
@click.argument("name")
@click.option("--owner", required=True, metavar="USER", help="User who manages its members.")
@placed
def create_project(at: Place, name: str, owner: str) -> None:
    """Create a project with the default quota."""
    asked = checked(ProjectRequest, name=name)
    with at.writing() as session:
        made = accounts.make_project(session, asked.name, user_named(session, owner), accounts.default_quota())
        session.flush()
        note(session, None, "project.create", made.id)
        record = _record(session, made)
    at.done(record, f"Created project {name}; {owner} is its owner.")


@project.command("list")
@placed
def list_projects(at: Place) -> None:
    """List projects with their usage."""
    with at.reading() as session:
        rows = [_record(session, row) for row in session.scalars(select(Project).order_by(Project.name))]
    if at.as_json:
        print_json(rows)
        return
    shown = [{**row["usage"], "id": row["id"], "name": row["name"]} for row in rows]
    print_table(shown, ("id", "name", "running_runs", "queued_runs", "cpus", "disk_mb", "llm_tokens"))


@project.command("show")
@click.argument("name")
@placed
def show_project(at: Place, name: str) -> None:
    """Show a project: members, quota, usage."""
    with at.reading() as session:
        record = _record(session, project_named(session, name))
    show_record(record, at.as_json)


@project.command("quota")
@click.argument("name")
@click.argument("changes", nargs=-1, required=True, metavar="FIELD=VALUE...")
@placed
def quota(at: Place, name: str, changes: tuple[str, ...]) -> None:
    """Change a project's quota: `concurrent_runs=4 memory_mb=none sandboxes=isolated,process`."""
    change = accounts.read_quota(changes)
    with at.writing() as session:
        found = project_named(session, name)
        accounts.set_quota(found, change)
        note(session, None, "project.quota", f"{found.id} {change.model_dump_json(exclude_unset=True)}")
        session.flush()
        record = _record(session, found)
    show_record(record, at.as_json)


def _noted(session: Session, user: User, action: str) -> dict[str, Any]:
    """Record a change of a user in the audit log; return the changed user's record."""
    note(session, None, action, user.id)
    session.flush()
    return user_view(user).model_dump(mode="json")


def _record(session: Session, row: Project) -> dict[str, Any]:
    members = select(User.name, Member.role).join(Member, Member.user_id == User.id).where(Member.project_id == row.id)
    return {
        "id": row.id,
        "name": row.name,
        "members": {str(name): str(role) for name, role in session.execute(members.order_by(User.name))},
        "quota": row.quota,
        "usage": usage_of(session, row).model_dump(),
        "created_at": row.created_at.isoformat(),
    }
