"""The output of commands: tables for people, one JSON document for programs."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pathlib import Path

_CONTROLS = r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
"""Characters that JSON need not escape, but that a terminal may interpret."""
_DECIMAL = re.compile(r"[-−]?[\d,]+\.\d+")
_POLL_SECONDS = 0.1
_NARROW = 32
"""Columns are not truncated below this width."""


def print_json(content: Any) -> None:
    """Print one JSON document; NaN and infinities become null, which every parser accepts."""
    text = json.dumps(_finite(content), indent=1, ensure_ascii=False)
    click.echo(re.sub(_CONTROLS, lambda match: f"\\u{ord(match[0]):04x}", text))


def _finite(content: Any) -> Any:
    if isinstance(content, float) and not math.isfinite(content):
        return None
    if isinstance(content, Mapping):
        return {key: _finite(value) for key, value in content.items()}
    return [_finite(value) for value in content] if isinstance(content, (list, tuple)) else content


def print_table(
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[str],
    give_way: Sequence[str] = (),
    least: Mapping[str, int] = MappingProxyType({}),
    *,
    as_json: bool = False,
) -> None:
    """Print rows in aligned columns, as wide as the terminal; columns that do not fit are listed below the table.

    Args:
        rows: The rows.
        columns: The names of the columns.
        give_way: Columns to shorten in the middle first, the widest most, before lines are truncated.
        least: Columns to shorten next, one by one, with their minimum width.
        as_json: Whether to print one JSON document with all values of the rows instead.

    Rich is not imported for this, so that lists appear without delay.
    """
    rows = list(rows)
    if as_json:
        print_json(rows)
        return
    import shutil

    texts = [_column([row.get(column) for row in rows]) for column in columns]
    heads = [column.upper().replace("_", " ") for column in columns]
    widths = [max(map(len, [head, *column])) for head, column in zip(heads, texts, strict=True)]
    sides = [">" if any(map(_DECIMAL.fullmatch, column)) else "<" for column in texts]
    room = shutil.get_terminal_size((120, 24)).columns
    yielding = [columns.index(name) for name in give_way]
    while yielding and sum(widths) + 2 * (len(widths) - 1) > room:
        widest = max(yielding, key=widths.__getitem__)
        if widths[widest] <= _NARROW:
            break
        widths[widest] -= 1
    for name, width in least.items():
        over = sum(widths) + 2 * (len(widths) - 1) - room
        if over > 0 and name in columns:
            place = columns.index(name)
            widths[place] = max(min(width, widths[place]), widths[place] - over)
    while len(widths) > 1:
        *others, last = widths
        if sum(others) + 2 * len(others) + min(len(heads[len(others)]), last) <= room:
            break
        widths = others
    for number, line in enumerate([heads, *zip(*texts, strict=True)]):
        parts = [f"{cut(text, width):{side}{width}}" for text, width, side in zip(line, widths, sides, strict=False)]
        text = "  ".join(parts).rstrip()
        text = text if len(text) <= room else text[: max(room - 1, 10)] + "…"
        click.echo(click.style(text, bold=True) if number == 0 else text)
    if omitted := columns[len(widths) :]:
        click.echo(f"A wider terminal also shows {', '.join(omitted)}.", err=True)


def _column(values: Sequence[Any]) -> list[str]:
    """Return the texts of a column; numbers get as many decimals as the one with the most, so that they align."""
    texts = [cell(value) for value in values]
    decimals = max((len(text.partition(".")[2]) for text in texts if _DECIMAL.fullmatch(text)), default=0)
    return [
        f"{value:z.{decimals}f}" if isinstance(value, float) and math.isfinite(value) else cell(value)
        for value in values
    ]


def cut(text: str, width: int) -> str:
    """Fit text into this many columns; longer text is shortened in the middle, to keep the end of ids."""
    if len(text) <= width:
        return text
    end = max((width - 1) // 2, min(7, width - 2))
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, one pair per line; names without a value are omitted."""
    for name, value in facts.items():
        if value in (None, [], (), {}, ""):
            continue
        text = ", ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, Mapping) else value
        text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else text
        click.echo(f"{click.style(name.ljust(12), bold=True)} {safe(str(text))}")


def cell(value: Any) -> str:
    """Return the text of a value in a table cell."""
    from mleredux.models import formats

    if isinstance(value, float):
        return formats.plain(value, 5)
    if isinstance(value, (list, tuple)):
        return safe(",".join(map(str, value)))
    return "-" if value is None else safe(formats.text(value))


def safe(text: str) -> str:
    """Make untrusted text safe to print on one line: characters that are not printable are escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def printable(block: bytes) -> str:
    """Make log bytes safe to print on a terminal: control characters and bytes that are not UTF-8 are escaped."""
    text = block.decode("utf-8", "backslashreplace").replace("\r", "\n")
    return "".join(char if char in "\n\t" or char.isprintable() else ascii(char)[1:-1] for char in text)


def echo(text: str, *, err: bool = False) -> None:
    """Print text that may contain foreign names or words; terminal control characters are escaped."""
    click.echo(printable(text.encode("utf-8", "surrogatepass")), err=err)


def write_log(block: bytes, prefix: str = "") -> None:
    """Write log bytes to stderr."""
    text = printable(block)
    if prefix:
        text = "".join(prefix + line for line in text.splitlines(keepends=True))
    sys.stderr.write(text)
    sys.stderr.flush()


def check_order(ctx: click.Context, submission: Path, task: str) -> None:
    """Reject a file and a task in the wrong order."""
    import shlex

    if not submission.exists() and os.path.isfile(task):  # noqa: PTH113
        raise click.UsageError(f"The file comes first: `{ctx.command_path} {shlex.join((task, str(submission)))}`.")


def growing(path: Path, ended: Callable[[], bool], wait: Callable[[float], object]) -> Iterator[bytes]:
    """Yield the content of a file as it grows.

    Args:
        path: The file.
        ended: Returns whether the file no longer grows.
        wait: Waits for the given number of seconds.
    """
    position = 0
    while True:
        last = ended()
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            if file.seek(0, os.SEEK_END) < position:
                position = 0  # the log was truncated: a new attempt started
            file.seek(position)
            while block := file.read(1 << 16):
                position += len(block)
                yield block
        if last:
            return
        wait(_POLL_SECONDS)
