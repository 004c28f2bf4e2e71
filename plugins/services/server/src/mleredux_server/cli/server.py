"""`mleredux server`: administer users, tokens and projects of a service directly in its database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from mleredux.errors import MlereduxError, NotFound
from mleredux.plugin.command import Duration, print_json, print_table

from mleredux_server.cli.care import audit, backup, downgrade, restore, retention, rotate_key
from mleredux_server.cli.context import (
    checked,
    done,
    opened,
    placed,
    project_named,
    reading,
    show_record,
    user_named,
    writing,
)

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from mleredux_server.database.tables import Project, User

_SCOPES = ("read", "run", "grade", "tokens", "admin")


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
def migrate(runs_dir: str | None, database: str | None, as_json: bool) -> None:
    """Migrate the database; `serve` also does so when it starts."""
    with opened(runs_dir, database, migrate=True) as found:
        if as_json:
            print_json({"database": found.shown, "revision": found.revision()})
        else:
            click.echo(f"{found.shown} is at revision {found.revision()}.")


for each in (downgrade, rotate_key, backup, restore, audit, retention):
    command.add_command(each)


@token.command("create")
@click.option("--user", "user_name", required=True, metavar="NAME", help="The token's owner.")
@click.option("--name", default="cli", show_default=True, help="Purpose of the token.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(_SCOPES),
    help="Scope to grant; can be repeated.  [default: read, run, grade; admin for admins]",
)
@click.option("--expires", type=Duration(), metavar="TIME", help="Lifetime, e.g. 12h or 90d.  [default: no expiry]")
@click.option("--project", "project_name", metavar="NAME", help="Limit the token to this project.")
@placed
def create_token(
    user_name: str,
    name: str,
    scopes: tuple[str, ...],
    expires: float | None,
    project_name: str | None,
    runs_dir: str | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Create a token and print it; it is not shown again."""
    from datetime import timedelta

    from mleredux_server.accounts.accounts import make_token, note
    from mleredux_server.database.tables import Member, now
    from mleredux_server.runs.views import token_view
    from mleredux_server.schemas.accounts import TokenRequest

    with writing(runs_dir, database) as session:
        owner = user_named(session, user_name)
        chosen = scopes or (("admin",) if owner.admin and project_name is None else ("read", "run", "grade"))
        asked = checked(TokenRequest, name=name, scopes=list(chosen), expires_in=expires)
        if "admin" in chosen and (not owner.admin or project_name is not None):
            raise MlereduxError("Only admins' tokens without a project can have the scope admin.")
        bound = project_named(session, project_name) if project_name is not None else None
        if bound is not None and session.get(Member, (bound.id, owner.id)) is None:
            raise MlereduxError(f"User {owner.name} is not a member of project {bound.name}.")
        made, said = make_token(
            session,
            owner,
            asked.name,
            list(chosen),
            project_id=bound.id if bound else None,
            expires_at=now() + timedelta(seconds=expires) if expires else None,
        )
        session.flush()
        note(session, None, "token.create", made.id)
        record = {**token_view(made, owner.name).model_dump(mode="json"), "token": said}
    if as_json:
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
def list_tokens(user_name: str | None, runs_dir: str | None, database: str | None, as_json: bool) -> None:
    """List tokens that are not revoked."""
    from sqlalchemy import select

    from mleredux_server.database.tables import Token, User
    from mleredux_server.runs.views import token_view

    query = select(Token, User.name).join(User, User.id == Token.user_id).where(Token.revoked_at.is_(None))
    with reading(runs_dir, database) as session:
        if user_name is not None:
            query = query.where(Token.user_id == user_named(session, user_name).id)
        rows = [
            token_view(row, name).model_dump(mode="json")
            for row, name in session.execute(query.order_by(User.name, Token.created_at))
        ]
    print_table(rows, ("id", "user", "name", "scopes", "project", "expires_at", "last_used_at"), as_json=as_json)


@token.command("revoke")
@click.argument("token_id", metavar="ID")
@placed
def revoke_token(token_id: str, runs_dir: str | None, database: str | None, as_json: bool) -> None:
    """Revoke a token; a running server applies this within five seconds."""
    from mleredux_server.accounts.accounts import note
    from mleredux_server.database.tables import Token, now

    with writing(runs_dir, database) as session:
        found = session.get(Token, token_id)
        if found is None or found.revoked_at is not None:
            raise NotFound(f"Token {token_id!r} not found.", hint="See `mleredux server token list`.")
        found.revoked_at = now()
        note(session, None, "token.revoke", found.id)
    done({"id": token_id, "revoked": True}, f"Revoked token {token_id}.", as_json)


@user.command("create")
@click.argument("name")
@click.option("--admin", is_flag=True, help="Grant all permissions.")
@placed
def create_user(name: str, admin: bool, runs_dir: str | None, database: str | None, as_json: bool) -> None:
    """Create a user with their own project."""
    from mleredux_server.accounts.accounts import make_user
    from mleredux_server.schemas.accounts import UserRequest

    asked = checked(UserRequest, name=name, admin=admin)
    with writing(runs_dir, database) as session:
        made = make_user(session, asked.name, admin=asked.admin)
        record = _noted(session, made, "user.create")
    done(record, f"Created user {name}. Next: mleredux server token create --user {name}", as_json)


@user.command("list")
@placed
def list_users(runs_dir: str | None, database: str | None, as_json: bool) -> None:
    """List users."""
    from sqlalchemy import select

    from mleredux_server.database.tables import User
    from mleredux_server.runs.views import user_view

    with reading(runs_dir, database) as session:
        rows = [user_view(row).model_dump(mode="json") for row in session.scalars(select(User).order_by(User.name))]
    print_table(rows, ("id", "name", "admin", "created_at", "disabled_at"), as_json=as_json)


@user.command("disable")
@click.argument("name")
@placed
def disable(name: str, runs_dir: str | None, database: str | None, as_json: bool) -> None:
    """Disable a user; their runs remain."""
    from mleredux_server.accounts.accounts import disable_user

    with writing(runs_dir, database) as session:
        found = user_named(session, name)
        disable_user(session, found)
        record = _noted(session, found, "user.disable")
    done(record, f"Disabled user {name}; their runs remain.", as_json)


@user.command("enable")
@click.argument("name")
@placed
def enable(name: str, runs_dir: str | None, database: str | None, as_json: bool) -> None:
    """Enable a disabled user; their tokens stay revoked."""
    with writing(runs_dir, database) as session:
        found = user_named(session, name)
        found.disabled_at = None
        record = _noted(session, found, "user.enable")
    done(record, f"Enabled user {name}. Next: mleredux server token create --user {name}", as_json)


@user.command("link")
@click.argument("name")
@click.option("--issuer", required=True, metavar="URL", help="Issuer of the OpenID provider (`iss`).")
@click.option("--subject", required=True, metavar="ID", help="The account there (`sub`).")
@click.option(
    "--remove", is_flag=True, help="Remove the link instead, so that the account no longer signs in as this user."
)
@placed
def link(
    name: str, issuer: str, subject: str, remove: bool, runs_dir: str | None, database: str | None, as_json: bool
) -> None:
    """Let an account at an OpenID provider sign in as a user, even if it was linked to another one."""
    from mleredux_server.accounts.accounts import link_identity
    from mleredux_server.database.tables import Identity

    with writing(runs_dir, database) as session:
        found, known = user_named(session, name), session.get(Identity, (issuer, subject))
        if not remove:
            link_identity(session, found, issuer, subject)
        elif known is not None and known.user_id == found.id:
            session.delete(known)
        else:
            raise NotFound(f"{subject} at {issuer} is not linked to {name}.", hint="The Server page lists accounts.")
        noted = _noted(session, found, "user.unlink" if remove else "user.link")
        record = {**noted, "issuer": issuer, "subject": subject}
    done(record, f"{subject} at {issuer} {'no longer signs' if remove else 'signs'} in as {name}.", as_json)


@project.command("create")
@click.argument("name")
@click.option("--owner", required=True, metavar="USER", help="User who manages its members.")
@placed
def create_project(name: str, owner: str, runs_dir: str | None, database: str | None, as_json: bool) -> None:
    """Create a project with the default quota."""
    from mleredux_server.accounts.accounts import default_quota, make_project, note
    from mleredux_server.schemas.accounts import ProjectRequest

    asked = checked(ProjectRequest, name=name)
    with writing(runs_dir, database) as session:
        made = make_project(session, asked.name, user_named(session, owner), default_quota())
        session.flush()
        note(session, None, "project.create", made.id)
        record = _record(session, made)
    done(record, f"Created project {name}; {owner} is its owner.", as_json)


@project.command("list")
@placed
def list_projects(runs_dir: str | None, database: str | None, as_json: bool) -> None:
    """List projects with their usage."""
    from sqlalchemy import select

    from mleredux_server.database.tables import Project

    with reading(runs_dir, database) as session:
        rows = [_record(session, row) for row in session.scalars(select(Project).order_by(Project.name))]
    if as_json:
        print_json(rows)
        return
    shown = [{**row["usage"], "id": row["id"], "name": row["name"]} for row in rows]
    print_table(shown, ("id", "name", "running_runs", "queued_runs", "cpus", "disk_mb", "llm_tokens"))


@project.command("show")
@click.argument("name")
@placed
def show_project(name: str, runs_dir: str | None, database: str | None, as_json: bool) -> None:
    """Show a project: members, quota, usage."""
    with reading(runs_dir, database) as session:
        record = _record(session, project_named(session, name))
    show_record(record, as_json)


@project.command("quota")
@click.argument("name")
@click.argument("changes", nargs=-1, required=True, metavar="FIELD=VALUE...")
@placed
def quota(name: str, changes: tuple[str, ...], runs_dir: str | None, database: str | None, as_json: bool) -> None:
    """Change a project's quota: `concurrent_runs=4 memory_mb=none sandboxes=isolated,process`."""
    from mleredux_server.accounts.accounts import note, read_quota, set_quota

    change = read_quota(changes)
    with writing(runs_dir, database) as session:
        found = project_named(session, name)
        set_quota(found, change)
        note(session, None, "project.quota", f"{found.id} {change.model_dump_json(exclude_unset=True)}")
        session.flush()
        record = _record(session, found)
    show_record(record, as_json)


def _noted(session: Session, user: User, action: str) -> dict[str, Any]:
    """Record a change of a user in the audit log; return the changed user's record."""
    from mleredux_server.accounts.accounts import note
    from mleredux_server.runs.views import user_view

    note(session, None, action, user.id)
    session.flush()
    return user_view(user).model_dump(mode="json")


def _record(session: Session, row: Project) -> dict[str, Any]:
    from sqlalchemy import select

    from mleredux_server.database.tables import Member, User
    from mleredux_server.runs.admission import usage_of

    members = select(User.name, Member.role).join(Member, Member.user_id == User.id).where(Member.project_id == row.id)
    return {
        "id": row.id,
        "name": row.name,
        "members": {str(name): str(role) for name, role in session.execute(members.order_by(User.name))},
        "quota": row.quota,
        "usage": usage_of(session, row).model_dump(),
        "created_at": row.created_at.isoformat(),
    }
