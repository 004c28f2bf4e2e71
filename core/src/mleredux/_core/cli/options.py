"""Options: `--server`; those for this machine or a server only; those of many commands; durations and sizes.

Nothing here uses HTTP: a plugin opens the server as a `Backend` (`mleredux_open_backend`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal, TypeVar, cast

import click

from mleredux.models.units import megabytes, seconds

Place = Literal["here", "machine", "server", "both"]
"""Where a command runs: on this machine only (`here`, the default; `machine` even if `MLEREDUX_SERVER` is set, because
the command is about this machine), on a server only, or on either."""
_Command = TypeVar("_Command", bound=Callable[..., Any] | click.Command)
SERVER_VARIABLE = "MLEREDUX_SERVER"
"""The environment variable with the URL of a server."""
_MOST = 10**15
"""Limit of all numbers, which databases and JSON store exactly below it."""
_OPTION = "--server"
_SERVER = "mleredux.server"
_EXPLICIT = "mleredux.server.explicit"
NO_CLIENT = (
    "The option --server needs the client, which is not installed (or is blocked). "
    "Install it: `pip install mleredux-client`."
)


def note_server(ctx: click.Context, args: Sequence[str]) -> list[str]:
    """Store the requested server and return the other arguments.

    `--server URL` may appear anywhere before `--`; the last one takes precedence, then `MLEREDUX_SERVER`; an empty
    value means this machine.

    Raises:
        click.BadOptionUsage: `--server` has no value.
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
                raise click.BadOptionUsage(_OPTION, f"Option {_OPTION!r} needs the URL of a server.", ctx)
            url = value
        elif word.startswith(f"{_OPTION}="):
            url = word.removeprefix(f"{_OPTION}=")
        else:
            rest.append(word)
    ctx.meta[_SERVER], ctx.meta[_EXPLICIT] = url.strip() or None, len(rest) < len(args)
    return rest


def server_of(ctx: click.Context) -> str | None:
    """Return the requested server, as written by the user; None for this machine."""
    return cast("str | None", ctx.meta.get(_SERVER))


def ignore_server_variable(ctx: click.Context, place: Place) -> None:
    """Ignore a server set only by the environment if a command with this place is about this machine."""
    if place == "machine" and not ctx.meta.get(_EXPLICIT):
        ctx.meta[_SERVER] = None


def is_available(ctx: click.Context, place: Place) -> bool:
    """Return whether something with this place is available with the selected backend."""
    return place in (("both", "here", "machine") if server_of(ctx) is None else ("both", "server"))


def place_of(facts: Mapping[str, Any]) -> Place:
    """Return the place where a registered command runs, according to its entry."""
    return cast("Place", facts.get("place", "here"))


def wrong_place_message(command: str, place: Place) -> str:
    """Return the error message for a command that runs only in the other place."""
    if place == "server":
        return f"`{command}` runs on a server only; specify one with --server URL (or {SERVER_VARIABLE})."
    return f"`{command}` runs on this machine only; omit --server (or unset {SERVER_VARIABLE})."


class PlacedOption(click.Option):
    """An option that is valid in one place only: listed in its help, rejected elsewhere.

    Args:
        place: `here` or `server`.
        why: Why the option does not apply to a server.
    """

    def __init__(self, *args: Any, place: Place, why: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.place, self.why = place, why

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the help record as click does, if the option is available."""
        return super().get_help_record(ctx) if is_available(ctx, self.place) else None

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Process the option as click does, after rejecting one that belongs to the other place."""
        if self.name in opts and not is_available(ctx, self.place) and not ctx.resilient_parsing:
            if self.place == "server":
                raise click.UsageError(f"{self.opts[0]} needs a server; specify one with --server URL.", ctx)
            raise click.UsageError(f"{self.opts[0]} cannot be combined with --server: {self.why}", ctx)
        return super().handle_parse_result(ctx, opts, args)


def local_option(*names: str, **facts: Any) -> Callable[[_Command], _Command]:
    """Return the decorator of an option for this machine only, like `click.option`."""
    return click.option(*names, cls=PlacedOption, place="here", **facts)


def server_option(*names: str, **facts: Any) -> Callable[[_Command], _Command]:
    """Return the decorator of an option for a server only, like `click.option`."""
    return click.option(*names, cls=PlacedOption, place="server", **facts)


json_option = click.option("--json", "as_json", is_flag=True, help="Print only one JSON document on stdout.")
"""The option `--json` of a click command; the command gets `as_json`."""
runs_dir_option = local_option(
    "--runs-dir",
    type=click.Path(file_okay=False),
    help="Folder for runs; ./runs by default. [env: MLEREDUX_RUNS_DIR]",
    why="the server has its own runs folder.",
)
"""The option `--runs-dir` of a click command; the command gets `runs_dir`."""
store_option = local_option(
    "--store",
    metavar="URL",
    help="Object store for the executor's nodes, s3://BUCKET/PREFIX.  [default: they share the file system]",
    why="the server has its own.",
)
"""The option `--store` of a click command; the command gets `store`."""
data_dir_option = local_option(
    "--data-dir",
    type=click.Path(file_okay=False),
    help="Folder for data; the user's cache folder by default. [env: MLEREDUX_DATA_ROOT]",
    why="the server has its own data folder.",
)
"""The option `--data-dir` of a click command; the command gets `data_dir`."""


class _Written(click.ParamType[Any]):
    """A type whose values `read` parses from text; it raises a `ValueError` with a sentence if it can't."""

    read: Callable[[Any], Any]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value."""
        try:
            return self.read(value)
        except (ValueError, OverflowError) as error:
            self.fail(str(error), param, ctx)


class Duration(_Written):
    """A duration in seconds, written as `90`, `90s`, `30m`, `2h` or `1h30m`."""

    name = "duration"
    """The type's name in messages."""
    read = staticmethod(seconds)
    """Return seconds."""


class Since(_Written):
    """A point in time, written as an age (`2h`, `7d`) or a date."""

    name = "time"
    """The type's name in messages."""

    def read(self, text: str) -> datetime:
        """Return the point in time."""
        if match := re.fullmatch(r"(\d{1,6})([smhdw])", text):
            unit = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}[match[2]]
            return datetime.now(UTC) - timedelta(**{unit: int(match[1])})
        try:
            return datetime.fromisoformat(text).astimezone()
        except ValueError:
            raise ValueError(f"{text!r} is invalid; use 2h, 7d, or 2026-05-01.") from None


class Megabytes(_Written):
    """A size in MiB, written as `4096`, `512m` or `4g`.

    Args:
        least: The smallest size allowed.
    """

    name = "size"
    """The type's name in messages."""

    def __init__(self, least: int = 0) -> None:
        self.least = least

    def read(self, text: Any) -> int:
        """Return megabytes."""
        if (size := megabytes(text)) < self.least:
            raise ValueError(f"{text!r} is too small; the minimum is {self.least} MB.")
        return size


class Pair(click.ParamType[str]):
    """A name and a value, written as `NAME=VALUE`.

    Args:
        names: Returns the names allowed.
        kind: The type of the values.
    """

    name = "pair"
    """The type's name in messages."""

    def __init__(self, names: Callable[[], Sequence[str]], kind: click.ParamType[Any]) -> None:
        self.names, self.kind = names, kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text."""
        name, _, rest = value.partition("=")
        if not (name and rest):
            self.fail(f"{value!r} is not of the form {param.metavar if param else 'NAME=VALUE'}.", param, ctx)
        click.Choice(self.names()).convert(name, param, ctx)
        self.kind.convert(rest, param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the names allowed, each with the value 1."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(f"{name}=1") for name in self.names() if name.startswith(incomplete)]


def check_values(command: click.Command) -> None:
    """Make a command refuse non-finite or huge numbers, and text that is not `NAME=VALUE`, as usage errors."""
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        check_values(each)
    for param in command.params:
        if getattr(param.callback, "func", None) is not _checked:
            param.callback = partial(_checked, param.callback)


def _checked(callback: Callable[..., Any] | None, ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    for item in value if isinstance(value, tuple) else (value,):
        if isinstance(item, (int, float)) and not abs(item) < _MOST:
            raise click.BadParameter(f"{str(item)[:20]} is not a finite number of at most 15 digits.", ctx, param)
        pair = isinstance(item, str) and str(param.metavar).endswith("=VALUE")
        if pair and not re.match(r"\s*[^\s=].*?=", item, re.DOTALL):
            raise click.BadParameter(f"{item!r} is not of the form {param.metavar}.", ctx, param)
    return callback(ctx, param, value) if callback else value
