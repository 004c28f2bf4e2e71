"""`mleredux agent build`: build an agent's environment ahead of its runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click
from mleredux.plugin.command import EXIT_ENVIRONMENT_BROKE, json_option, print_json, read_options, write_log

from mleredux_client.calls import create, known
from mleredux_client.cli.context import ServerCommand, server, service_option

if TYPE_CHECKING:
    from mleredux_client.cli.service import Service

_ENDED = ("ready", "failed")
_POLL_SECONDS = 1.0


@click.command(cls=ServerCommand, place="server")
@click.argument("agent", metavar="AGENT|repo:REFERENCE")
@click.option("--sandbox", metavar="ID", help="Sandbox to build the image for.  [default: the best isolated one]")
@click.option("-O", "--option", "options", multiple=True, metavar="KEY=VALUE", help="Set an option of the agent.")
@click.option(
    "--secret", "secrets", multiple=True, metavar="NAME", help="Name of a secret, yours or the project's: GIT_TOKEN."
)
@click.option("--project", metavar="NAME", help="The project whose quota the build counts against.")
@click.option("--follow", is_flag=True, help="Show the log of the build.")
@click.option("--detach", "-d", is_flag=True, help="Do not wait for the build.")
@json_option
@click.pass_context
def build(ctx: click.Context, /, agent: str, options: tuple[str, ...], as_json: bool, **asked: Any) -> None:
    """Build an agent's environment on the server ahead of its runs, and print its pinned name for `run --agent`.

    \b
    Exit codes: 0 ready · 1 error · 2 usage · 4 it could not be built
    """
    from mleredux_client._sync.uploads import uploaded  # slow to import

    named, there = server(ctx).named, server(ctx).service
    wanted: dict[str, Any] = {"agent": uploaded(there.http, agent, asked["project"])}
    wanted |= {
        "options": read_options(options) or None,
        "sandbox": asked["sandbox"],
        "secrets": list(asked["secrets"]) or None,
        "project": asked["project"],
    }
    told = there.json(create("/v1/builds", known(wanted)))
    if not asked["detach"]:
        told = _wait(there, told, follow=asked["follow"], quiet=as_json)
    if as_json:
        print_json(told)
    elif told["status"] != "failed":
        click.echo(told["agent"])
    if told["status"] == "failed":
        if not as_json:
            log = f"`mleredux agent build {agent} --follow{service_option(named)}` shows the log."
            click.echo(f"Error: {told.get('message') or 'The build failed.'} {log}", err=True)
        ctx.exit(EXIT_ENVIRONMENT_BROKE)
    if told["status"] == "ready" and not as_json:
        how = "existed already" if told.get("cached") else "is built"
        click.echo(f"Its environment {how}. Use it: `mleredux run TASK --agent {told['agent']}`.", err=True)


def _wait(there: Service, told: dict[str, Any], *, follow: bool, quiet: bool) -> dict[str, Any]:
    """Wait for a build and return it; meanwhile, print its log or its states to stderr."""
    from mleredux_client.answers import log_text_of  # slow to import

    path = f"/v1/builds/{told['id']}"
    said = None
    if follow:
        for message in there.events(f"{path}/log"):
            write_log(log_text_of(message).encode())
    while True:
        told = there.get(path)
        if told["status"] in _ENDED:
            return told
        if told["status"] != said and not quiet:
            said = told["status"]
            click.echo(f"{told['id']} · {said}", err=True)
        time.sleep(_POLL_SECONDS)
