"""What verbs print: tables for people, one JSON document for programs."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else there."
)
runs_dir_option = click.option(
    "--runs-dir",
    type=click.Path(file_okay=False),
    help="Where runs are kept (MLEREDUX_RUNS_DIR, else ./runs).",
)
data_dir_option = click.option(
    "--data-dir",
    type=click.Path(file_okay=False),
    help="Where data are kept (MLEREDUX_DATA, else the cache folder).",
)


def print_json(content: Any) -> None:
    """One JSON document; NaN and infinities as null, so that every reader takes it."""
    click.echo(json.dumps(_finite(content), indent=1, ensure_ascii=False))


def _finite(content: Any) -> Any:
    if isinstance(content, float) and not math.isfinite(content):
        return None
    if isinstance(content, Mapping):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_finite(value) for value in content]
    return content


def print_table(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Rows in aligned columns, cut to the terminal's width; the last column gets what is left.

    Rich is not imported for this: a list must come at once.
    """
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    heads = [column.upper().replace("_", " ") for column in columns]
    widths = [max(len(line[i]) for line in [heads, *cells]) for i in range(len(columns))]
    room = shutil.get_terminal_size((120, 24)).columns
    for number, line in enumerate([heads, *cells]):
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        text = text if len(text) <= room else text[: max(room - 1, 10)] + "…"
        click.echo(click.style(text, bold=True) if number == 0 else text)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, (list, tuple)):
        return safe(",".join(str(item) for item in value))
    return safe(str(value))


def safe(text: str) -> str:
    """Text on one line that can't drive a terminal, whoever wrote it: what is not printable as escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
