"""The backend that works on a server, and the commands that need a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.plugin import Ref, Scheme, hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable

mleredux_contract = 2

_COMMANDS = {
    "account": ("account:account", "both", "Manage tokens, users, projects and quotas of a server."),
    "login": ("login:login", "both", "Log in to a server: prompt for a token, verify and store it."),
    "logout": ("login:logout", "both", "Log out of a server: remove its stored token."),
    "whoami": ("login:whoami", "both", "Show the authenticated user and scopes."),
    "agent build": ("building:build", "server", "Build an agent's environment on the server ahead of its runs."),
    "runs wait": ("runs:wait", "server", "Wait until runs have ended, and show them."),
    "runs change": ("runs:change", "server", "Change labels, notes, priority and pins of runs."),
    "runs retry": ("runs:retry", "server", "Retry runs that have ended."),
}
"""Commands, each with its implementation, where it works, and its description."""


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Register commands that need a server; those for logging in are also available without `--server`."""
    for name, (target, place, title) in _COMMANDS.items():
        yield Ref(name, f"mleredux_client.cli.{target}", {"title": title, "place": place, "section": "Servers"})


@hookimpl
def mleredux_register_schemes() -> Iterable[Scheme]:
    """Return the schemes of servers' URLs."""
    return [Scheme(id=name, title="Servers", open_backend=_open_backend) for name in ("http", "https")]


def _open_backend(url: str) -> object:
    """Return the backend for the server at a URL, with its stored token."""
    from mleredux_client.cli import backend, service

    return backend.ServerBackend(service.open_service(url), url)
