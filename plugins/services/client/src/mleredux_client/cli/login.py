"""`mleredux login`, `logout` and `whoami`."""

from __future__ import annotations

import sys
from contextlib import closing

import click
from mleredux.plugin.command import SERVER_VARIABLE, json_option, print_facts, print_json, server_of

from mleredux_client.cli import servers
from mleredux_client.cli.context import ServerCommand, explained, service
from mleredux_client.errors import MlereduxApiError


@click.command(cls=ServerCommand)
@click.argument("url", required=False)
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input.")
@click.pass_context
def login(ctx: click.Context, url: str | None, token_stdin: bool) -> None:
    """Log in to a server: prompt for a token, verify and store it.

    The token is never passed as an argument, which other users on this machine could read.
    """
    from mleredux_client.cli.service import Service  # slow to import

    named = url or server_of(ctx)
    if named is None:
        raise click.UsageError("Specify the server, as in `mleredux login https://mleredux.example`.")
    address = servers.clean_url(named)
    if servers.in_the_clear(address):
        click.echo("Warning: http:// to another machine sends the token in the clear; use https://.", err=True)
    if token_stdin:
        text = sys.stdin.read(servers.MAX_TOKEN + 2)
    elif sys.stdin.isatty():
        text = click.prompt(f"Token for {address}", hide_input=True, err=True)
    else:
        raise click.UsageError("The token can't be entered without a terminal; pass it with --token-stdin.")
    token = servers.check_token(text)
    try:
        with closing(Service(address, token)) as service:
            me = service.get("/v1/me")
    except MlereduxApiError as error:
        raise explained(error, named) from error
    path = servers.keep_token(address, token)
    click.echo(f"Logged in to {address} as {me['user']['name']}; the token is in {path}.", err=True)
    if not server_of(ctx):
        click.echo(f"Use it with --server {address}, or {SERVER_VARIABLE}={address}.", err=True)


@click.command(cls=ServerCommand)
@click.argument("url", required=False)
@click.pass_context
def logout(ctx: click.Context, url: str | None) -> None:
    """Log out of a server: remove its stored token.

    The token stays valid; revoke it with `mleredux account token revoke`.
    """
    named = url or server_of(ctx)
    if named is None:
        known = servers.kept_servers()
        raise click.UsageError(f"Specify the server; tokens are stored for: {', '.join(known) or 'none'}.")
    address = servers.clean_url(named)
    removed = servers.forget_token(address)
    click.echo(f"Removed the token for {address}." if removed else f"No token is stored for {address}.", err=True)


@click.command(cls=ServerCommand)
@json_option
@click.pass_context
def whoami(ctx: click.Context, as_json: bool) -> None:
    """Show the authenticated user and scopes."""
    remote = service(ctx)
    me = remote.get("/v1/me")
    if as_json:
        print_json(me)
        return
    token = me["token"]
    default = next((item["name"] for item in me["projects"] if item["id"] == me["default_project"]), None)
    facts = {
        "server": remote.url,
        "user": f"{me['user']['name']}{' (admin)' if me['user']['admin'] else ''}",
        "token": f"{token['name']}, until {token['expires_at'] or 'it is revoked'}",
        "scopes": ", ".join(token["scopes"]),
        "project": default or "-",
    }
    print_facts(facts)
