"""`mleredux server`: administer users, tokens and projects of a service directly in its database."""

from __future__ import annotations

import click
from mleredux.plugin.command import CommandGroup, Duration, print_json, print_table

from mleredux_server.accounts.identity import SCOPES
from mleredux_server.cli.care import audit, backup, downgrade, restore, retention, rotate_key
from mleredux_server.cli.context import Place, placed, show_record


@click.group("server")
def command() -> None:
    """Administer a service, even while it runs: users, tokens, projects, quotas, backups."""


@command.group(cls=CommandGroup)
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
    with at.opened(migrate=True) as database:
        revision = database.revision()
        at.done({"database": database.shown, "revision": revision}, f"{database.shown} is at revision {revision}.")


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
@click.option("--expires-in", type=Duration(), help="Lifetime, such as 12h or 90d.  [default: no expiry]")
@click.option("--project", "project_name", metavar="NAME", help="Limit the token to this project.")
@placed
def create_token(
    at: Place, user_name: str, name: str, scopes: tuple[str, ...], expires_in: float | None, project_name: str | None
) -> None:
    """Create a token and print it; it will not be shown again."""
    record, token = at.administer(
        lambda database: database.create_token(user_name, name, scopes, expires_in, project_name)
    )
    if at.as_json:
        print_json({**record, "token": token})
        return
    whose = f"{record['id']} of {record['user']} ({', '.join(record['scopes'])})"
    click.echo(f"Token {whose}; store it now, it is only shown once:", err=True)
    click.echo(token)


@token.command("list")
@click.option("--user", "user_name", metavar="NAME", help="Only tokens of this user.")
@placed
def list_tokens(at: Place, user_name: str | None) -> None:
    """List tokens that are not revoked."""
    rows = at.administer(lambda database: database.tokens(user_name))
    print_table(rows, ("id", "user", "name", "scopes", "project", "expires_at", "last_used_at"), as_json=at.as_json)


@token.command("revoke")
@click.argument("token_id", metavar="ID")
@placed
def revoke_token(at: Place, token_id: str) -> None:
    """Revoke a token; a running server applies this within five seconds."""
    at.administer(lambda database: database.revoke_token(token_id))
    at.done({"id": token_id, "revoked": True}, f"Revoked token {token_id}.")


@user.command("create")
@click.argument("name")
@click.option("--admin", is_flag=True, help="Grant all permissions.")
@placed
def create_user(at: Place, name: str, admin: bool) -> None:
    """Create a user with their own project."""
    record = at.administer(lambda database: database.create_user(name, admin))
    at.done(record, f"Created user {name}. Next: mleredux server token create --user {name}")


@user.command("list")
@placed
def list_users(at: Place) -> None:
    """List users."""
    rows = at.administer(lambda database: database.users())
    print_table(rows, ("id", "name", "admin", "created_at", "disabled_at"), as_json=at.as_json)


@user.command("disable")
@click.argument("name")
@placed
def disable(at: Place, name: str) -> None:
    """Disable a user; their runs remain."""
    record = at.administer(lambda database: database.disable_user(name))
    at.done(record, f"Disabled user {name}; their runs remain.")


@user.command("enable")
@click.argument("name")
@placed
def enable(at: Place, name: str) -> None:
    """Enable a disabled user; their tokens stay revoked."""
    record = at.administer(lambda database: database.enable_user(name))
    at.done(record, f"Enabled user {name}. Next: mleredux server token create --user {name}")


@user.command("link")
@click.argument("name")
@click.option("--issuer", required=True, metavar="URL", help="Issuer of the OpenID provider (`iss`).")
@click.option("--subject", required=True, metavar="ID", help="The account's ID at this provider (`sub`).")
@click.option(
    "--remove", is_flag=True, help="Remove the link instead, so that the account no longer signs in as this user."
)
@placed
def link(at: Place, name: str, issuer: str, subject: str, remove: bool) -> None:
    """Let an account at an OpenID provider sign in as a user, even if it was linked to another one."""
    record = at.administer(lambda database: database.link_user(name, issuer, subject, remove=remove))
    at.done(record, f"{subject} at {issuer} {'no longer signs' if remove else 'signs'} in as {name}.")


@project.command("create")
@click.argument("name")
@click.option("--owner", required=True, metavar="USER", help="User who manages the project's members.")
@placed
def create_project(at: Place, name: str, owner: str) -> None:
    """Create a project with the default quota."""
    record = at.administer(lambda database: database.create_project(name, owner))
    at.done(record, f"Created project {name}; {owner} is its owner.")


@project.command("list")
@placed
def list_projects(at: Place) -> None:
    """List projects with their usage."""
    rows = at.administer(lambda database: database.projects())
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
    record = at.administer(lambda database: database.project(name))
    show_record(record, at.as_json)


@project.command("quota")
@click.argument("name")
@click.argument("changes", nargs=-1, required=True, metavar="FIELD=VALUE...")
@placed
def quota(at: Place, name: str, changes: tuple[str, ...]) -> None:
    """Change a project's quota: `concurrent_runs=4 memory_mb=none sandboxes=isolated,process`."""
    record = at.administer(lambda database: database.set_quota(name, changes))
    show_record(record, at.as_json)
