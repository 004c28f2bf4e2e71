"""`mleredux agent build`: build an agent's environment ahead of its runs."""

from __future__ import annotations

import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
from mleredux.plugin.command import EXIT_ENVIRONMENT_BROKE, json_option, print_json, read_options, write_log

from mleredux_client.calls import create, known
from mleredux_client.cli.context import ServerCommand, server, service_option
from mleredux_client.errors import WorkFailed

if TYPE_CHECKING:
    from mleredux_client.cli.service import Service


@click.command(cls=ServerCommand, place="server")
@click.argument("agent", metavar="AGENT|repo:REFERENCE")
@click.option("--sandbox", metavar="ID", help="Sandbox to build the image for.  [default: the best isolated one]")
@click.option("-O", "--option", "options", multiple=True, metavar="KEY=VALUE", help="Set an option of the agent.")
@click.option(
    "--secret", "secrets", multiple=True, metavar="NAME", help="Secret to use, yours or the project's, e.g. GIT_TOKEN."
)
@click.option("--project", metavar="NAME", help="The project whose quota the build counts against.")
@click.option("--follow", is_flag=True, help="Show the log of the build.")
@click.option("--detach", "-d", is_flag=True, help="Do not wait for the build.")
@json_option
@click.pass_context
def build(ctx: click.Context, /, agent: str, options: tuple[str, ...], as_json: bool, **fields: Any) -> None:
    """Build an agent's environment on the server ahead of its runs, and print its pinned name for `run --agent`.

    \b
    Exit codes: 0 ready · 1 error · 2 usage · 4 it could not be built
    """
    from mleredux_client._sync.uploads import uploaded  # slow to import

    named, remote = server(ctx).named, server(ctx).service
    wanted: dict[str, Any] = {"agent": uploaded(remote.http, agent, fields["project"])}
    wanted |= {
        "options": read_options(options) or None,
        "sandbox": fields["sandbox"],
        "secrets": list(fields["secrets"]) or None,
        "project": fields["project"],
    }
    record = remote.json(create("/v1/builds", known(wanted)))
    if not fields["detach"]:
        record = _wait(remote, record, follow=fields["follow"], quiet=as_json)
    if as_json:
        print_json(record)
    elif record["status"] != "failed":
        click.echo(record["agent"])
    if record["status"] == "failed":
        if not as_json:
            log = f"`mleredux agent build {shlex.quote(agent)} --follow{service_option(named)}` shows the log."
            click.echo(f"Error: {record.get('message') or 'The build failed.'} {log}", err=True)
        ctx.exit(EXIT_ENVIRONMENT_BROKE)
    if record["status"] == "ready" and not as_json:
        state = "existed already" if record.get("cached") else "is built"
        click.echo(f"Its environment {state}. Use it: `mleredux run TASK --agent {record['agent']}`.", err=True)


def _wait(remote: Service, record: dict[str, Any], *, follow: bool, quiet: bool) -> dict[str, Any]:
    """Wait for a build and return it; meanwhile, print its log or its states to stderr."""
    from mleredux_client._sync.work import Build  # slow to import
    from mleredux_client.answers import log_text_of

    def show_state(build: Build, state: str) -> None:
        if not (quiet or build.finished):
            click.echo(f"{build.id} · {state}", err=True)

    build = Build._of(remote.http, record)
    for message in remote.events(f"/v1/builds/{build.id}/log") if follow else ():
        write_log(log_text_of(message).encode())
    with suppress(WorkFailed):
        build.wait(progress=show_state)
    return build.record.model_dump(mode="json")
