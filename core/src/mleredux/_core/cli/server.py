"""`--server URL`: which machine works a command, and what only one of the two takes.

Nothing here knows HTTP: a plugin opens the server as a `Backend` (`mleredux_open_backend`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import click

Place = Literal["here", "server", "both"]
"""Where a command works: on this machine only (what is not said otherwise), on a server only, or on either."""
_Command = TypeVar("_Command", bound=Callable[..., Any] | click.Command)
SERVER_VARIABLE = "MLEREDUX_SERVER"
"""The environment variable with the URL of a server."""
_OPTION = "--server"
_META = "mleredux.server"
_EXPLICIT = "mleredux.server.explicit"
_ALWAYS_HERE = frozenset({"doctor", "new", "plugins", "serve", "server"})
"""Commands that nobody means for another machine: `MLEREDUX_SERVER` does not keep them from working."""
NO_CLIENT = (
    "Working with a server needs the client, which is not installed here (or is blocked). "
    "Install it: `pip install 'mleredux-client[cli]'`."
)


def note_server(ctx: click.Context, args: Sequence[str]) -> list[str]:
    """Remember the server that is asked for, and give the other arguments back.

    `--server URL` may stand anywhere before `--`; the last one counts, then `MLEREDUX_SERVER`; an empty one means this
    machine.

    Raises:
        click.BadOptionUsage: `--server` names nothing.
    """
    rest: list[str] = []
    url = os.environ.get(SERVER_VARIABLE, "")
    words = iter(args)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word == _OPTION:
            value = next(words, None)
            if value is None or value.startswith("-"):
                if ctx.resilient_parsing:
                    break
                raise click.BadOptionUsage(_OPTION, f"Option {_OPTION!r} needs the URL of a server behind it.", ctx)
            url = value
        elif word.startswith(f"{_OPTION}="):
            url = word.removeprefix(f"{_OPTION}=")
        else:
            rest.append(word)
    ctx.meta[_META], ctx.meta[_EXPLICIT] = url.strip() or None, len(rest) < len(args)
    return rest


def server_of(ctx: click.Context) -> str | None:
    """The server that is asked for, as it was written; None for this machine."""
    found: str | None = ctx.meta.get(_META)
    return found


def stay_here(ctx: click.Context, command: str) -> None:
    """Forget a server that only the environment names, where the command is about this machine."""
    if command in _ALWAYS_HERE and not ctx.meta.get(_EXPLICIT):
        ctx.meta[_META] = None


def works(ctx: click.Context, place: Place) -> bool:
    """Whether something of that place works where this command line asks for it."""
    return place in ("both", "here" if server_of(ctx) is None else "server")


def place_of(facts: Mapping[str, Any]) -> Place:
    """Where a registered command works, from what is listed of it."""
    found: Place = facts.get("place", "here")
    return found


def elsewhere(command: str, place: Place) -> str:
    """The sentence for a command that works only in the other place."""
    if place == "server":
        return f"`{command}` works on a server only; name one with --server URL (or {SERVER_VARIABLE})."
    return f"`{command}` works on this machine only; leave out --server (or unset {SERVER_VARIABLE})."


class PlacedOption(click.Option):
    """An option that only one place takes: in the help there, refused in a sentence elsewhere.

    Args:
        place: `here` or `server`.
        why: What holds on a server instead.
    """

    def __init__(self, *args: Any, place: Place, why: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.place, self.why = place, why

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """As click's, where the option can be used."""
        return super().get_help_record(ctx) if works(ctx, self.place) else None

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """As click's, after refusing an option of the other place."""
        if self.name in opts and not works(ctx, self.place) and not ctx.resilient_parsing:
            if self.place == "server":
                raise click.UsageError(f"{self.opts[0]} needs a server; name one with --server URL.", ctx)
            raise click.UsageError(f"{self.opts[0]} cannot be combined with --server: {self.why}", ctx)
        return super().handle_parse_result(ctx, opts, args)


def local_option(*names: str, **facts: Any) -> Callable[[_Command], _Command]:
    """`click.option` that only this machine takes."""
    return click.option(*names, cls=PlacedOption, place="here", **facts)


def server_option(*names: str, **facts: Any) -> Callable[[_Command], _Command]:
    """`click.option` that only a server takes."""
    return click.option(*names, cls=PlacedOption, place="server", **facts)
