"""Format values for display in terminals, notebooks, HTML pages and tables.

Standard library only, so the client can use it without importing the rest of mleredux.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

TONES = {"done": "good", "failed": "bad", "timed_out": "warn", "cancelled": "warn", "interrupted": "warn"}
"""Tone of each final state of a run: `good`, `warn` or `bad`."""


_VOID = "[ \u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
"""Printable characters without a shape: spaces, fillers, and selectors of variants of other characters."""


def is_visible(char: str) -> bool:
    """Return whether a character has a shape, unlike spaces and control characters."""
    return char.isprintable() and not re.match(_VOID, char)


@dataclass(frozen=True)
class Shown:
    """Annotation that marks a model field as displayed wherever the model is, and defines how.

    Attributes:
        title: The label.
        parts: Format strings over the model's attributes, joined by commas; those without a value are omitted. Empty:
            the field's own value.
        when: Another field that must also have a value.
        brief: Whether the field is also displayed in tables of several runs.
    """

    title: str
    parts: tuple[str, ...] = ()
    when: str | None = None
    brief: bool = False


def facts(model: Any, *, brief: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the label and text of each displayed field that has a value, in field order.

    Args:
        model: The model to display.
        brief: Whether to yield only the fields that tables of several runs display.
    """
    for name, field in type(model).model_fields.items():
        for shown in (extra for extra in field.metadata if isinstance(extra, Shown)):
            value = getattr(model, name)
            lacking = value in (None, "", (), [], {}) or (shown.when and getattr(model, shown.when) is None)
            if not lacking and (shown.brief or not brief):
                parts = (_part(form, model) for form in shown.parts) if shown.parts else (text(value),)
                yield shown.title, ", ".join(part for part in parts if part)


class _Number(float):
    """A number whose format `g` never uses an exponent."""

    def __format__(self, form: str) -> str:
        return plain(self, 6) if form == "g" else super().__format__(form)


class _Attributes(dict[str, Any]):
    """Expose a model's attributes to `str.format_map`."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._model = model

    def __missing__(self, name: str) -> Any:
        value = getattr(self._model, name)
        return text(value) if isinstance(value, bool) else _Number(value) if isinstance(value, float) else value


def _part(form: str, model: Any) -> str:
    try:
        return form.format_map(_Attributes(model))
    except TypeError:  # None has no such format
        return ""


def text(value: Any) -> str:
    """Return any value as short text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return plain(value, 6)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    return ", ".join(str(item) for item in value) if isinstance(value, (list, tuple)) else str(value)


def duration(seconds: float) -> str:
    """Format seconds: `0.42 s`, `12.3 s`, `3 min 12 s`, `2 h`."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    large, length, small = ("h", 3600, "min") if seconds >= 3600 else ("min", 60, "s")
    rest = int(seconds % length) // (length // 60)
    return f"{int(seconds // length)} {large} {rest} {small}" if rest else f"{int(seconds // length)} {large}"


def round_duration(seconds: float) -> str:
    """Format seconds for axis ticks: `0`, `5 s`, `2 min`, `1.5 h`."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s" if seconds else "0"


def size(count: float) -> str:
    """Format bytes in decimal units: `512 B`, `5.4 kB`, `1.2 GB`."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


def megabytes(count: float) -> str:
    """Format mebibytes, the unit of limits: `0.3 MB`, `312 MB`, `4 GB`."""
    if count < 10:
        return f"{count:.2g} MB"
    return f"{count:.0f} MB" if count < 1024 else f"{count / 1024:.3g} GB"


def score(value: float | None) -> str:
    """Format a score in a column with five decimals, as rounded in reports."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else f"{'' if value > 0 else '−'}∞"
    return (f"{value:,.5f}" if abs(value) < 1e12 else f"{value:.5g}").replace("-", "−")


def number(value: float | None) -> str:
    """Format a score in a sentence with up to five decimals, without zeros at the end."""
    text = score(value)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def plain(value: float, digits: int = 12, *, grouped: bool = False, signed: bool = False) -> str:
    """Format a number in full, without an exponent: `0.00005`, `3600`, `2592000`.

    Args:
        digits: Number of significant digits; digits before the decimal point are never dropped.
        grouped: Whether to separate thousands with commas.
        signed: Whether positive numbers have a sign too.
    """
    from decimal import Decimal

    rounded = f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}"
    text = f"{Decimal(rounded):{'+' * signed}z{',' * grouped}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def counted(number: int, noun: str) -> str:
    """Format a number with its noun: `1 row`, `1,200 rows`, `0 entries`."""
    if number != 1:
        noun = f"{noun[:-1]}ies" if re.search("[^aeiou]y$", noun) else f"{noun}{'e' * noun.endswith(('s', 'x', 'h'))}s"
    return f"{number:,} {noun}"


def moment(time: datetime) -> str:
    """Format a time: `2026-11-21 12:00:00 UTC`."""
    return f"{time:%Y-%m-%d %H:%M:%S} {time.tzname() or ''}".rstrip()


def ordinal(value: float) -> str:
    """Format an ordinal number: `1st`, `82nd`, `95th`."""
    whole = int(value)
    return f"{whole}{'th' if whole % 100 in (11, 12, 13) else {1: 'st', 2: 'nd', 3: 'rd'}.get(whole % 10, 'th')}"


def short_reference(agent: str) -> str:
    """Return an agent's name for lists; a reference is shortened to the end of its location and seven digits of its
    version.

    `repo:https://host/team/solver.git@COMMIT#fast` is `solver/fast@4f2c1aa`; other names are unchanged.
    """
    scheme, _, rest = agent.partition(":")
    if "/" not in rest and len(rest.partition("@")[2]) < 40:  # an id, or a name as in `human:ada@example.org`
        return agent
    place, _, folder = rest.partition("#")
    path, at, version = place.rpartition("@")
    if not at or re.search("[/:]", version):  # no version: the @ belongs to a user or a folder
        path, at, version = place, "", ""
    version = version.removeprefix("copy-")
    name = re.split("[/:]", path.rstrip("/"))[-1].removesuffix(".git") or scheme
    return f"{'/'.join(filter(None, (name, folder)))}{at}{version[:7] if len(version) >= 40 else version}"
