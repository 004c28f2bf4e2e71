"""HTML of values for notebooks. Everything is escaped: names, messages and labels may be hostile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

from mleredux.models.formats import TONES, text

_MAX_TEXT = 300
_MEDALS = {"gold": "🥇", "silver": "🥈", "bronze": "🥉"}
_COLOURS = {"good": "#1a7f37", "warn": "#9a6700", "bad": "#b3261e"}


def table(columns: Iterable[str], rows: Sequence[Mapping[str, Any]], total: int) -> str:
    """Return rows as a table; `total` is the number of all rows, including those that are not shown."""
    names = list(columns)
    head = "".join(f"<th>{escaped(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(name, row.get(name))}</td>' for name in names)}</tr>" for row in rows)
    more = f"<p>… and {total - len(rows)} more</p>" if total > len(rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def pairs(values: Mapping[str, Any]) -> str:
    """Return a table of names and values, without names that have no value."""
    left = 'style="text-align:left"'
    rows = "".join(
        f"<tr><th {left}>{escaped(name)}</th><td {left}>{_cell(name, value)}</td></tr>"
        for name, value in values.items()
        if value not in (None, "", [], {}, ())
    )
    return f"<table><tbody>{rows}</tbody></table>"


def _cell(name: str, value: Any) -> str:
    if name == "status":
        return coloured(str(value))
    if name == "medal" and value:
        return f"{_MEDALS.get(str(value), '')} {escaped(value)}".strip()
    return escaped(value)


def coloured(status: str) -> str:
    """Return a colored status."""
    return f'<span style="color:{_COLOURS.get(TONES.get(status, ""), "#0969da")}">{escaped(status)}</span>'


def is_short(value: Any) -> bool:
    """Return whether a value fits into a cell."""
    return (
        value is None
        or isinstance(value, bool | int | float | datetime)
        or (isinstance(value, str | list) and len(value) < 200)
    )


def escaped(value: Any) -> str:
    """Return a short form of a value, escaped for HTML."""
    shown = text(value)
    return escape(shown if len(shown) <= _MAX_TEXT else f"{shown[:_MAX_TEXT]}…", quote=True)
