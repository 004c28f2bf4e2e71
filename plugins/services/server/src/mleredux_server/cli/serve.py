"""`mleredux serve`."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, get_args

import click
from mleredux.plugin.command import Duration, catalogue, data_dir_option, runs_dir_option
from pydantic.fields import FieldInfo

from mleredux_server.settings import Settings, settings_of

TOKEN_VARIABLE = "MLEREDUX_SERVE_TOKEN"


_METAVARS = {
    "database": "URL",
    "executor": "ID",
    "store": "URL",
    "base_image": "IMAGE",
    "repo_hosts": "HOST",
    "agent_images": "PATTERN",
    "agent_hosts": "[build:]HOST",
    "agent_llm_fields": "FIELD",
    "webhook_hosts": "HOST[:PORT]",
    "retain": "[PROJECT=]TIME",
    "oidc_issuer": "URL",
    "oidc_client": "ID",
    "oidc_scope": "SCOPES",
    "oidc_allow": "CLAIM=PATTERN",
}
_VARIABLES = {"database": "MLEREDUX_DATABASE", "store": "MLEREDUX_STORE", "base_image": "MLEREDUX_BASE_IMAGE"}
_OTHERS = frozenset({"runs_dir", "data_dir", "max_body_kb", "oidc_secret"})
"""Settings without an option here."""


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each setting, with the setting's documentation, type and default."""
    for name, setting in reversed(Settings.model_fields.items()):
        if name not in _OTHERS:
            command = _option(name, setting)(command)
    return command


def _option(name: str, setting: FieldInfo) -> Callable[[Any], Any]:
    text, default, kind = " ".join(str(setting.description).split()), setting.default, setting.annotation
    option, bounds = f"--{name.replace('_', '-')}", {type(bound).__name__: bound for bound in setting.metadata}
    facts: dict[str, Any] = {"help": text.replace(" [default", "  [default"), "envvar": _VARIABLES.get(name)}
    if "[default" not in text and default not in (None, ()):
        facts["default"] = default
    if isinstance(default, tuple):
        return click.option(option.removesuffix("s"), name, multiple=True, metavar=_METAVARS.get(name, "NAME"), **facts)
    if isinstance(default, bool):
        return click.option(f"{option}/--no-{name}", **facts)
    if isinstance(default, int):
        least, most = (getattr(bounds.get(bound), bound.lower(), None) for bound in ("Ge", "Le"))
        return click.option(option, type=click.IntRange(least, most), **facts)
    if isinstance(default, float):
        return click.option(option, type=Duration(), **facts)
    if choices := get_args(kind) if default in get_args(kind) else ():
        return click.option(option, type=click.Choice(choices), **facts)
    return click.option(option, metavar=_METAVARS.get(name), **facts)


@click.command("serve", context_settings={"show_default": True})
@_options
@click.option(
    "--default-quota",
    multiple=True,
    metavar="FIELD=VALUE",
    envvar="MLEREDUX_DEFAULT_QUOTA",
    help="Quota of new users' projects, e.g. concurrent_runs=4, cpus=8, sandboxes=isolated,process.",
)
@runs_dir_option
@data_dir_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Start the HTTP service.

    The first start creates a user `admin` and prints their token, once.
    """
    from mleredux_server.operations.address import alone, bound

    # Otherwise, broken connections stay open, and the database stays locked, until the next garbage collection.
    gc.set_threshold(700, 10, 10)
    options["oidc_secret"] = os.environ.get("MLEREDUX_OIDC_SECRET")
    if quota := options.pop("default_quota"):
        from mleredux_server.accounts.accounts import QUOTA_VARIABLE, default_quota

        os.environ[QUOTA_VARIABLE] = " ".join(quota)
        default_quota()  # raises if it is not valid
    chosen = {key: value for key, value in options.items() if value is not None}
    settings = settings_of(chosen.pop("runs_dir", None), **chosen)
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
