"""The verbs of the command line against a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable

mleredux_contract = 2

_TWINS = {
    "account": "account:account",
    "agent": "looking:agents",
    "agent build": "building:build",
    "artifacts": "reading:artifacts",
    "grade": "grading:grade",
    "list": "looking:listing",
    "login": "login:login",
    "logout": "login:logout",
    "logs": "reading:logs",
    "run": "run:run",
    "runs": "runs:runs",
    "show": "looking:show",
    "validate": "grading:validate",
    "whoami": "login:whoami",
}
_ALWAYS = {
    "account": "Tokens, users, projects and quotas of a server.",
    "login": "Ask for the token of the server at URL, try it, and keep it.",
    "logout": "Forget the token of the server at URL.",
    "whoami": "Say who the token belongs to on a server, and what it may do.",
}
"""Verbs that are there without `--server` too: to log in, or to say that they need one."""


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Twins of local verbs (`remote run`), and what only a server has."""
    for name, place in _TWINS.items():
        yield Ref(f"remote {name}", f"mleredux_client.cli.{place}")
    for name, title in _ALWAYS.items():
        yield Ref(name, f"mleredux_client.cli.{_TWINS[name]}", {"title": title})
