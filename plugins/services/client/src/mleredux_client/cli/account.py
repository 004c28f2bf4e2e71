"""`mleredux account`: tokens, users, projects and quotas over HTTP."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TextIO

import click
from mleredux.plugin.command import CommandGroup, Duration, Megabytes, print_json, print_table

from mleredux_client.calls import Call, create, known, segment
from mleredux_client.cli.context import add_list, service, with_json
from mleredux_client.cli.webhooks import webhook

if TYPE_CHECKING:
    from mleredux_client.cli.service import Service

_SCOPES = ("read", "run", "grade", "tokens", "admin")
_QUOTAS = ("concurrent_runs", "queued_runs", "cpus", "memory_mb", "gpus", "disk_mb", "llm_tokens", "max_time_limit")
_USED = {"concurrent_runs": "running_runs"}
_name = click.argument("name")
_there = service
"""An alias, since `service` is also an option."""


class _AccountGroup(click.Group):
    """A group that is listed even without `--server`, and then reports that it needs a server."""

    place = "both"


@click.group(cls=_AccountGroup)
def account() -> None:
    """Manage tokens, users, projects and quotas of a server."""


account.add_command(webhook)


@account.group(cls=CommandGroup)
def token() -> None:
    """Manage your tokens, or those of all users if you are an administrator."""


@token.command("create")
@click.option("--name", required=True, help="Purpose of the token, such as ci or laptop.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(_SCOPES),
    help="Scope to grant; can be repeated. [default: read, run, grade]",
)
@click.option("--project", metavar="NAME", help="Limit the token to this project.")
@click.option("--expires-in", type=Duration(), help="Lifetime, such as 12h or 30d.")
@click.option("--user", metavar="NAME", help="Owner of the token (for administrators).")
@with_json
def create_token(ctx: click.Context, /, name: str, scopes: tuple[str, ...], as_json: bool, **fields: Any) -> None:
    """Create a token and print it; it will not be shown again."""
    remote = service(ctx)
    expires = fields["expires_in"]
    body = {
        "name": name,
        "scopes": list(scopes or _SCOPES[:3]),
        "project": _find(remote, "project", fields["project"])["id"] if fields["project"] else None,
        "expires_in": int(expires) if expires is not None else None,
        "user": _find(remote, "user", fields["user"])["id"] if fields["user"] else None,
    }
    token = remote.json(create("/v1/tokens", known(body)))
    if as_json:
        print_json(token)
        return
    click.echo(token["token"])
    until = f"until {token['expires_at']}" if token["expires_at"] else "until it is revoked"
    click.echo(f"Scopes: {', '.join(token['scopes'])}; {until}. The token will not be shown again.", err=True)


add_list(
    token,
    "token",
    ("id", "name", "user", "scopes", "expires_at", "last_used_at"),
    "List tokens, without their secrets.",
)


@token.command("revoke")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.pass_context
def revoke_tokens(ctx: click.Context, ids: tuple[str, ...]) -> None:
    """Revoke tokens by their ids."""
    for token_id in ids:
        service(ctx).delete(f"/v1/tokens/{segment(token_id)}")
        click.echo(f"Revoked {token_id}.")


@account.group()
def secret() -> None:
    """Manage secrets that runs use by name (`run --secret NAME`): your own, or a project's."""


@secret.command("set")
@_name
@click.option("--project", metavar="NAME", help="The project that owns the secret.  [default: your account]")
@click.option(
    "--from", "source", type=click.File(encoding="utf-8"), help="File with the value, or `-` for standard input."
)
@with_json
def set_secret(ctx: click.Context, name: str, project: str | None, source: TextIO | None, as_json: bool) -> None:
    """Create or replace a secret, e.g. HF_TOKEN; it can't be read back.

    Agents get it as an environment variable of this name, with two exceptions: GIT_TOKEN (or USER:TOKEN) is used to
    fetch private repositories of agents, and API keys of language models, such as OPENAI_API_KEY, are used by the
    gateway.
    """
    if source is None and not sys.stdin.isatty():
        raise click.UsageError("Pass the value with --from FILE, or --from - for standard input.")
    value = source.read().strip() if source is not None else click.prompt("Value", hide_input=True)
    call = Call("PUT", f"/v1/secrets/{segment(name)}", json=known({"value": value, "project": project}))
    secret = service(ctx).json(call)
    _print(secret, f"{name} is set. Use it: `mleredux run … --secret {name}`.", as_json)


@secret.command("list")
@click.option("--project", metavar="NAME", help="List the secrets of this project.  [default: yours]")
@with_json
def list_secrets(ctx: click.Context, project: str | None, as_json: bool) -> None:
    """List secrets, without their values."""
    rows = list(service(ctx).pages("/v1/secrets", {"project": project}))
    print_table(rows, ("name", "project", "updated_at"), as_json=as_json)


@secret.command("delete")
@_name
@click.option("--project", metavar="NAME", help="The project that owns the secret.  [default: your account]")
@click.pass_context
def delete_secret(ctx: click.Context, name: str, project: str | None) -> None:
    """Delete a secret."""
    service(ctx).http.send(Call("DELETE", f"/v1/secrets/{segment(name)}", known({"project": project})))
    click.echo(f"Deleted {name}.")


@account.group()
def user() -> None:
    """Manage users (for administrators)."""


@user.command("create")
@_name
@click.option("--admin", is_flag=True, help="Grant all permissions.")
@click.option("--service", metavar="PROJECT", help="Create a service account, for a program, in this project.")
@with_json
def create_user(ctx: click.Context, name: str, admin: bool, service: str | None, as_json: bool) -> None:
    """Create a user with their own project; `token create --user` creates their first token."""
    body = {"name": name, "admin": admin, "service": service is not None or None, "project": service}
    user = _there(ctx).json(create("/v1/users", body))
    further = f"Next: `mleredux account token create --name NAME --user {name}`."
    _print(user, f"{user['id']} is {user['name']}. {further}", as_json)


add_list(user, "user", ("id", "name", "admin"), "List users.")


@user.command("delete")
@_name
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_context
def delete_user(ctx: click.Context, name: str, yes: bool) -> None:
    """Remove a user by name or id."""
    remote = service(ctx)
    user = _find(remote, "user", name)
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Deleting without a terminal requires --yes.")
        click.confirm(f"Delete the user {user['name']} ({user['id']}) on {remote.url}?", abort=True)
    remote.delete(f"/v1/users/{segment(user['id'])}")
    click.echo(f"Deleted {user['name']}.")


@account.group()
def project() -> None:
    """Manage projects, which have members, runs and a quota."""


@project.command("create")
@_name
@with_json
def create_project(ctx: click.Context, name: str, as_json: bool) -> None:
    """Create a project."""
    project = service(ctx).json(create("/v1/projects", {"name": name}))
    _print(project, f"{project['id']} is {project['name']}. Use it: `mleredux run … --project {name}`.", as_json)


add_list(project, "project", ("id", "name", "role", "created_at"), "List projects that you can see.")


@project.command("show")
@_name
@with_json
def show_project(ctx: click.Context, name: str, as_json: bool) -> None:
    """Show a project's usage and quota."""
    remote = service(ctx)
    _print_project_usage(remote.get(_project_path(remote, name)), as_json)


@project.command("set-quota")
@_name
@click.option("--concurrent-runs", type=click.IntRange(min=0), help="Maximum number of concurrent runs.")
@click.option("--queued-runs", type=click.IntRange(min=0), help="Maximum number of queued runs.")
@click.option("--cpus", type=click.FloatRange(min=0), help="Maximum number of CPUs across all its runs.")
@click.option("--memory", "memory_mb", type=Megabytes(), help="Maximum memory of all its runs, such as 16g.")
@click.option("--gpus", type=click.IntRange(min=0), help="Maximum number of GPUs across all its runs.")
@click.option("--disk", "disk_mb", type=Megabytes(), help="Maximum disk space of all its runs, such as 100g.")
@click.option("--llm-tokens", type=click.IntRange(min=0), help="Maximum number of language model tokens.")
@click.option("--max-time-limit", type=Duration(), help="Maximum time limit of a run.")
@click.option("--sandbox", "sandboxes", multiple=True, metavar="ID", help="An allowed sandbox, or `isolated`.")
@click.option(
    "--network",
    "networks",
    multiple=True,
    type=click.Choice(("none", "gateway", "open")),
    help="An allowed network.",
)
@click.option("--weight", type=click.FloatRange(min=0, min_open=True), help="Weight of the project in the fair share.")
@click.option("--unlimited", multiple=True, type=click.Choice(_QUOTAS), help="Remove this limit.")
@with_json
def set_quota(ctx: click.Context, /, name: str, unlimited: tuple[str, ...], as_json: bool, **limits: Any) -> None:
    """Change the given limits of a project's quota (for administrators)."""
    chosen = {key: list(value) if isinstance(value, tuple) else value for key, value in limits.items()}
    change = {key: value for key, value in chosen.items() if value not in (None, [])} | dict.fromkeys(unlimited)
    if not change:
        raise click.UsageError("Specify a limit, such as --concurrent-runs 4.")
    remote = service(ctx)
    _print_project_usage(remote.json(Call("PATCH", _project_path(remote, name), json={"quota": change})), as_json)


@project.command("add-member")
@_name
@click.argument("user")
@click.option("--role", type=click.Choice(("member", "owner")), default="member", show_default=True)
@click.pass_context
def add_member(ctx: click.Context, name: str, user: str, role: str) -> None:
    """Add a user (by id; administrators also by name) to a project, or change their role."""
    remote = service(ctx)
    remote.http.send(Call("PUT", _member_path(remote, name, user), json={"role": role}))
    click.echo(f"{user} is {role} of {name}.")


@project.command("remove-member")
@_name
@click.argument("user")
@click.pass_context
def remove_member(ctx: click.Context, name: str, user: str) -> None:
    """Remove a user from a project."""
    remote = service(ctx)
    remote.delete(_member_path(remote, name, user))
    click.echo(f"{user} is no longer a member of {name}.")


@account.command()
@with_json
def usage(ctx: click.Context, as_json: bool) -> None:
    """Show the usage and quota of your projects."""
    projects = service(ctx).get("/v1/me")["projects"]
    if as_json:
        print_json([{name: item[name] for name in ("id", "name", "usage", "quota")} for item in projects])
    else:
        _print_usage(projects)


def _print(record: dict[str, Any], sentence: str, as_json: bool) -> None:
    if as_json:
        print_json(record)
    else:
        click.echo(sentence)


def _print_project_usage(project: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(project)
    else:
        _print_usage([project])


def _print_usage(projects: list[dict[str, Any]]) -> None:
    """Print one row per counted resource, with `-` for no limit."""
    rows = [
        {
            "project": item["name"],
            "what": name,
            "used": item["usage"].get(_USED.get(name, name)),
            "quota": item["quota"].get(name),
        }
        for item in projects
        for name in (*_QUOTAS, "sandboxes", "networks", "weight")
    ]
    print_table(rows, ("project", "what", "used", "quota"))


def _project_path(remote: Service, name: str) -> str:
    return f"/v1/projects/{segment(_find(remote, 'project', name)['id'])}"


def _member_path(remote: Service, name: str, user: str) -> str:
    return f"{_project_path(remote, name)}/members/{segment(_user_id(remote, user))}"


def _user_id(remote: Service, name: str) -> str:
    """Return a user's id; the user may be given by name if the caller may look up names."""
    if not remote.get("/v1/me")["user"]["admin"]:
        return name
    return str(_find(remote, "user", name)["id"])


def _find(remote: Service, kind: str, name: str) -> dict[str, Any]:
    """Return a project or a user by name or id; only administrators may look up users."""
    from mleredux_client.errors import NotFound

    matches = [item for item in remote.pages(f"/v1/{kind}s", {}) if name in (item["id"], item["name"])]
    exact = [item for item in matches if item["id"] == name] or matches
    if len(exact) == 1:
        return exact[0]
    if exact:
        ids = ", ".join(item["id"] for item in exact)
        raise NotFound(f"Several {kind}s are named {name!r}.", hint=f"Specify one by its id: {ids}.")
    raise NotFound(f"There is no {kind} {name!r}.", hint=f"See `mleredux account {kind} list`.")
