"""`--server URL`: the same verbs, worked by a service.

Nothing here knows HTTP. A plugin registers what a verb does there as `remote VERB`; a verb without such a twin is of
this machine only, and says so.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

SERVER_VARIABLE = "MLEREDUX_SERVER"
PREFIX = "remote "
_OPTION = "--server"
_META = "mleredux.server"
_EXPLICIT = "mleredux.server.explicit"
_ALWAYS_HERE = frozenset({"doctor", "new", "plugins", "serve", "server"})
"""Verbs that nobody means for another machine: `MLEREDUX_SERVER` does not keep them from working."""


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


def works_here(ctx: click.Context, verb: str) -> bool:
    """Whether a verb is worked by this machine: no server is named, or only by the environment, for no use."""
    return server_of(ctx) is None or (verb in _ALWAYS_HERE and not ctx.meta[_EXPLICIT])


def here_only(verb: str) -> str:
    """The sentence for a verb that no server can work."""
    return f"`{verb}` works on this machine only; leave out --server (or unset {SERVER_VARIABLE})."


NO_CLIENT = (
    "Working with a server needs the client, which is not installed here (or is blocked). "
    "Install it: `pip install 'mleredux-client[cli]'`."
)
