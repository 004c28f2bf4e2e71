"""Numbers as people read them."""

from __future__ import annotations

import math
from datetime import datetime


def duration(seconds: float) -> str:
    """`0.42 s`, `12.3 s`, `3 min 12 s`, `2 h`."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    large, length, small = ("h", 3600, "min") if seconds >= 3600 else ("min", 60, "s")
    rest = int(seconds % length) // (length // 60)
    return f"{int(seconds // length)} {large} {rest} {small}" if rest else f"{int(seconds // length)} {large}"


def round_duration(seconds: float) -> str:
    """`0`, `5 s`, `2 min`, `1.5 h`: for the marks of an axis."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s" if seconds else "0"


def size(count: float) -> str:
    """`512 B`, `5.4 kB`, `1.2 GB`: decimal units."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


def megabytes(count: float) -> str:
    """Mebibytes, as limits are stated: `0.3 MB`, `312 MB`, `4 GB`."""
    if count < 10:
        return f"{count:.2g} MB"
    return f"{count:.0f} MB" if count < 1024 else f"{count / 1024:.3g} GB"


def number(value: float | None) -> str:
    """A score: up to five decimals, as reports round it."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else f"{'' if value > 0 else '−'}∞"
    text = f"{value:,.5f}".rstrip("0").rstrip(".") if abs(value) < 1e12 else f"{value:.5g}"
    return text.replace("-", "−")


def moment(time: datetime) -> str:
    """`2026-11-21 12:00:00 UTC`."""
    return f"{time:%Y-%m-%d %H:%M:%S} {time.tzname() or ''}".rstrip()


def ordinal(value: float) -> str:
    """`1st`, `82nd`, `95th`."""
    whole = int(value)
    ending = "th" if whole % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(whole % 10, "th")
    return f"{whole}{ending}"
