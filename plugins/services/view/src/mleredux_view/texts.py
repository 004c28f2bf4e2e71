"""Formatting of values on pages."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from markupsafe import Markup, escape
from mleredux.models.formats import TONES, counted, duration, moment, number, score, short_reference, size

_SPARK = (84, 22, 3)
_QUANTITY = re.compile(r"([+-]?[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?)(?: ?([kMG]?B))?(?![\w.:-])")
_UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9}


def short_agent(agent: str | None) -> str:
    """Return an agent's id, or the short form of a reference; a dash if it is unknown."""
    return short_reference(agent) if agent else "–"


def status_tone(status: str | None) -> str:
    """Return the CSS class of a state: `good`, `warn`, `bad`, or `live` for a run that has not ended."""
    return TONES.get(status or "", "bad" if status == "damaged" else "live")


def words(name: str | None) -> str:
    """Return a name with spaces."""
    return (name or "").replace("_", " ")


def day(value: str | datetime | None) -> str:
    """Return a time without seconds."""
    if value is None:
        return "–"
    when = datetime.fromisoformat(value) if isinstance(value, str) else value
    return f"{when:%Y-%m-%d %H:%M}"


def money(value: float | None) -> str:
    """Return an amount in USD."""
    return "–" if value is None else f"${value:,.2f}" if value >= 0.1 or value == 0 else f"${value:,.4f}"


def spark(points: Sequence[Sequence[float]]) -> Markup:
    """Return a small curve of the score over time as SVG; empty for fewer than two points."""
    known = [(x, y) for x, y in points or () if isinstance(y, int | float) and math.isfinite(y)]
    if len(known) < 2:
        return Markup()
    wide, high, edge = _SPARK
    (low, top), last = (min(y for _, y in known), max(y for _, y in known)), known[-1][0] or 1.0
    at = [
        (edge + (wide - 2 * edge) * x / last, edge + (high - 2 * edge) * (1 - (y - low) / ((top - low) or 1)))
        for x, y in known
    ]
    path = f"M{at[0][0]:.1f} {at[0][1]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in at[1:])
    label = f"Score over time, from {number(known[0][1])} to {number(known[-1][1])}"
    return Markup(
        '<svg class="spark" width="{}" height="{}" role="img" aria-label="{}"><path d="{}"/>'
        '<circle cx="{}" cy="{}" r="2.5"/></svg>'
    ).format(wide, high, label, path, f"{at[-1][0]:.1f}", f"{at[-1][1]:.1f}")


def seconds(value: float | None) -> str:
    """Return a duration, or a dash."""
    return "–" if value is None else duration(value)


def thousands(value: Any) -> str:
    """Return a number with thousands separators."""
    return f"{value:,}"


def code(text: str) -> Markup:
    """Return a sentence with text between backticks formatted as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def in_order(rows: Iterable[Any], column: str, up: bool) -> list[Any]:
    """Return rows sorted by a column, with numbers in numerical order; rows without a value come last."""
    known = [(key, row) for row in rows if (key := key_of(row, column)) is not None]
    ordered = sorted(known, key=lambda item: (isinstance(item[0], str), item[0]), reverse=not up)
    return [row for _, row in ordered] + [row for row in rows if key_of(row, column) is None]


def key_of(row: Any, column: str) -> float | str | None:
    """Return the sort key of a row: a number, also for times and for texts that begin with a number, such as `1.2
    MB`."""
    for name in column.split("."):
        get = row.get if isinstance(row, Mapping) else partial(getattr, row)
        row = row[int(name)] if name.isdigit() else get(name, None)
    if isinstance(row, datetime):
        return row.timestamp()
    if isinstance(row, int | float):
        return None if math.isnan(row) else float(row)
    if row is None or row in ("", "–"):
        return None
    text = ", ".join(row) if isinstance(row, list) else str(row)
    known = _QUANTITY.match(text)
    return float(known[1].replace(",", "")) * _UNITS.get(known[2], 1) if known else text.casefold()


FILTERS = {
    "code": code,
    "counted": counted,
    "short_agent": short_agent,
    "tone": status_tone,
    "words": words,
    "day": day,
    "moment": moment,
    "money": money,
    "spark": spark,
    "seconds": seconds,
    "number": number,
    "score": score,
    "size": size,
    "thousands": thousands,
}
"""Filters for templates."""
