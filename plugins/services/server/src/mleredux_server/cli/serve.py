"""`mleredux serve`."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

import click
from mleredux.plugin.command import Duration, catalogue, data_dir_option, runs_dir_option

from mleredux_server.cli.context import settings_of

TOKEN_VARIABLE = "MLEREDUX_SERVE_TOKEN"


def _several(option: str, metavar: str, text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return an option that may be repeated; its values go to the setting with the plural name."""
    plural = option.removeprefix("--").replace("-", "_") + "s"
    return click.option(option, plural, multiple=True, metavar=metavar, help=text)


def _lasting(option: str, text: str) -> Callable[[Any], Any]:
    """Return an option for a duration."""
    return click.option(option, type=Duration(), help=text)


@click.command("serve", context_settings={"show_default": True})
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", default=8000, type=click.IntRange(0, 65535), help="Port; 0 chooses a free one.")
@click.option(
    "--database",
    metavar="URL",
    envvar="MLEREDUX_DATABASE",
    help="postgresql://USER:PASSWORD@HOST/NAME; MLEREDUX_DATABASE is safer.  [default: SQLite in the runs directory]",
)
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=0,
    show_default=False,
    help="Maximum number of concurrent runs.  [default: one per CPU; with --executor, one per CPU of its nodes and at "
    "least 256, including waiting ones]",
)
@click.option(
    "--executor",
    metavar="ID",
    help="Executor that places the runs on machines, e.g. slurm.  [default: local, processes of this server]",
)
@click.option(
    "--store",
    metavar="URL",
    envvar="MLEREDUX_STORE",
    help="Object store for the executor's nodes, s3://BUCKET/PREFIX.  [default: they share the file system]",
)
@click.option("--base-image", metavar="IMAGE", envvar="MLEREDUX_BASE_IMAGE", help="Base image to build images from.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", help="Format of the server's log.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    help="Minimum level to log.",
)
@click.option(
    "--requests-per-minute",
    type=click.IntRange(min=1),
    default=1200,
    help="Rate limit per user; further requests get 429.",
)
@click.option("--max-upload-mb", type=click.IntRange(min=1), default=2048, help="Maximum size of a submitted file.")
@click.option("--max-agent-mb", type=click.IntRange(min=1), default=100, help="Maximum size of an uploaded agent.")
@click.option(
    "--min-free-mb",
    type=click.IntRange(min=0),
    default=512,
    help="Free disk space below which the server reports that it is not ready.",
)
@_lasting(
    "--lease",
    "Time after which a worker that stopped renewing its lease is killed and replaced.  [default: 30s]",
)
@_lasting(
    "--stall-limit",
    "Time without any CPU use after which a worker is killed and replaced, except for builds.  [default: 15m]",
)
@_lasting("--stage-limit", "Time limit of each stage of a run; the agent has its own.  [default: 12h]")
@click.option(
    "--verify/--no-verify",
    default=True,
    help="Execute the final code of runs again to verify their results, unless a request says otherwise.",
)
@_several("--repo-host", "HOST", "Fetch users' agent repositories from these hosts only.  [default: any public host]")
@_several("--agent-image", "PATTERN", "Images that users may name.")
@_several("--agent-variable", "NAME", "Environment variables of the server that users' agents may use.")
@_several("--agent-host", "[build:]HOST", "Hosts that users' agents may reach while they run (or in builds).")
@_several(
    "--agent-llm-field",
    "FIELD",
    "Fields of requests to language models that users may grant to agents; a pattern is allowed.",
)
@_several(
    "--agent-llm-model",
    "NAME",
    "Language models that users may grant to agents besides those that the gateway offers; a pattern is allowed.",
)
@_several(
    "--agent-tool",
    "NAME",
    "MCP servers and skills of installed plugins that users may give to agents; a pattern is allowed.",
)
@click.option(
    "--default-quota",
    multiple=True,
    metavar="FIELD=VALUE",
    envvar="MLEREDUX_DEFAULT_QUOTA",
    help="Quota of new users' projects, e.g. concurrent_runs=4, cpus=8, sandboxes=isolated,process.",
)
@_several("--webhook-host", "HOST[:PORT]", "A private host to which webhooks may be sent.")
@click.option(
    "--retain",
    multiple=True,
    metavar="[PROJECT=]TIME",
    help="Delete runs this long after their end, e.g. 90d, team=30d, lab=forever.  [default: keep them]",
)
@_lasting("--half-life", "Time after which a user's past use counts half in the fair share.  [default: 1d]")
@click.option("--oidc-issuer", metavar="URL", help="OpenID provider through which users may sign in to the web pages.")
@click.option(
    "--oidc-client", metavar="ID", help="Client id at the provider; the secret is read from MLEREDUX_OIDC_SECRET."
)
@click.option("--oidc-scope", metavar="SCOPES", help="Scopes to request.  [default: openid profile email]")
@click.option(
    "--oidc-allow",
    multiple=True,
    metavar="CLAIM=PATTERN",
    help="Who may sign in, e.g. 'groups=ml-*' or 'email=*@example.org' (verified addresses); '*' for everyone.",
)
@runs_dir_option
@data_dir_option
@click.pass_context
def command(ctx: click.Context, /, **asked: Any) -> None:
    """Start the HTTP service.

    The first start creates a user `admin` and prints their token, once.
    """
    from mleredux_server.operations.address import alone, bound

    # Otherwise, broken connections stay open, and the database stays locked, until the next garbage collection.
    gc.set_threshold(700, 10, 10)
    asked["oidc_secret"] = os.environ.get("MLEREDUX_OIDC_SECRET")
    if quota := asked.pop("default_quota"):
        from mleredux_server.accounts.accounts import QUOTA_VARIABLE, default_quota

        os.environ[QUOTA_VARIABLE] = " ".join(quota)
        default_quota()  # raises if it is not valid
    given = {key: value for key, value in asked.items() if value is not None}
    settings = settings_of(given.pop("runs_dir", None), **given)
    if settings.store and settings.executor == "local":
        raise click.UsageError("--store requires --executor.")
    if settings.retain:
        from mleredux_server.operations.retention import read_rules

        read_rules(settings.retain)  # raises if one is not valid
    assert settings.agent_grants is not None  # raises if a name is not valid
    with alone(settings), bound(settings) as server_socket:
        from mleredux_server.app import create_app, make_service
        from mleredux_server.operations import logs
        from mleredux_server.operations.listener import first_token, serve
        from mleredux_server.operations.ownership import bind
        from mleredux_server.scheduler.dispatcher import Dispatcher

        logs.configure(settings.log_format, settings.log_level)
        service = make_service(settings, catalogue(ctx))
        bind(service)
        service.scheduler = Dispatcher(service)
        token = first_token(service, os.environ.get(TOKEN_VARIABLE))
        if token is not None:
            click.echo("Created user `admin`. Store this token now; it can't be displayed again:")
            click.echo(f"Token: {token}")
        host = server_socket.getsockname()[0]
        if not ip_address(host).is_loopback:
            click.echo(
                f"Warning: {host} is open to other machines without TLS, so tokens can be read in transit: "
                "put a proxy with TLS in front, and listen on 127.0.0.1.",
                err=True,
            )
        serve(create_app(service), server_socket, lambda url: click.echo(f"Listening on {url} (web pages: {url}/ui)"))
