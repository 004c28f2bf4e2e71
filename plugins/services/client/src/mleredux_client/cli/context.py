"""The server of the current command line, and its errors; the modules that talk to it are imported on first use."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import click
from mleredux import errors
from mleredux.errors import MlereduxError
from mleredux.plugin.command import SERVER_VARIABLE, backend, json_option, print_table, server_of

from mleredux_client.cli.servers import TOKEN_VARIABLE
from mleredux_client.errors import MlereduxApiError, NotFound, Unauthenticated

if TYPE_CHECKING:
    from mleredux_client.cli.backend import ServerBackend
    from mleredux_client.cli.service import Service


class ServerCommand(click.Command):
    """A command that needs a server: without one, it logs in or reports that a server is required."""

    def __init__(self, *args: Any, place: str = "both", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.place = place


def server(ctx: click.Context) -> ServerBackend:
    """Return the server that is the backend of the current command line.

    Raises:
        click.UsageError: No server is given.
    """
    if server_of(ctx) is None:
        raise click.UsageError(f"Specify a server with --server URL (or {SERVER_VARIABLE}).")
    return cast("ServerBackend", backend(ctx))


def service(ctx: click.Context) -> Service:
    """Return the server of the current command line."""
    return server(ctx).service


def with_json(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--json` to a command, which gets the context as its first argument."""
    return json_option(click.pass_context(function))


def add_list(group: click.Group, kind: str, columns: tuple[str, ...], sentence: str) -> None:
    """Add the command `list` to a group: it prints the resources `/v1/KINDs`."""

    @group.command("list", help=sentence)
    @with_json
    def listing(ctx: click.Context, as_json: bool) -> None:
        rows = list(service(ctx).pages(f"/v1/{kind}s", {}))
        print_table(rows, columns, as_json=as_json)


def service_option(named: str) -> str:
    """Return the option with which a command reaches the same server; empty if the environment names it."""
    return "" if named == os.environ.get(SERVER_VARIABLE, "").strip() else f" --server {named}"


def explained(error: MlereduxApiError, named: str) -> MlereduxError:
    """Convert the server's error to one of mleredux, for the command line to display."""
    hint, sentence = error.hint, error.detail
    if error.fields:
        problems = [f"{item['field']}: {item['message']}" for item in error.fields if item["message"] not in sentence]
        sentence = f"{sentence} ({'; '.join(problems)})" if problems else sentence
    no_route = error.slug is None or sentence.rstrip(".").lower() == "not found"
    if error.status == 404 and hint is None and no_route:
        sentence = f"{named} does not support this request."
        hint = "Check that it is the URL of a mleredux service, and not older than this client."
    if isinstance(error, Unauthenticated):
        hint = f"Log in with `mleredux login {named}`, or fix {TOKEN_VARIABLE}."
    if error.status == 500 and error.request_id:
        hint = f"{hint or ''} Its id in the server's log is {error.request_id}.".strip()
    kind = errors.NotFound if isinstance(error, NotFound) else MlereduxError
    return kind(sentence, hint=hint)
