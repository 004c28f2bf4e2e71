"""How values are written for people in notebooks.

The part of mleredux's own `formats` that the SDK needs, for it does without mleredux; a test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

TONES = {"done": "good", "failed": "bad", "timed_out": "warn", "cancelled": "warn", "interrupted": "warn"}
"""States of a run that nothing follows, and how good they are: `good`, `warn`, `bad`."""


@dataclass(frozen=True)
class Shown:
    """Beside the type of a model's field: that and how it is shown, everywhere the model is.

    Attributes:
        title: Its label.
        parts: Formats of all the model's attributes, joined by commas without those that have no value; the field's
            own value where empty.
        when: Another field that must have a value too.
        brief: Also in tables of several runs.
    """

    title: str
    parts: tuple[str, ...] = ()
    when: str | None = None
    brief: bool = False


def facts(model: Any, *, brief: bool = False) -> Iterator[tuple[str, str]]:
    """Label and text of each field of a model that is shown and has a value, in the order of its fields.

    Args:
        brief: Only those that stand in tables of several runs too.
    """
    for name, field in type(model).model_fields.items():
        for shown in (extra for extra in field.metadata if isinstance(extra, Shown)):
            value = getattr(model, name)
            lacking = value in (None, "", (), [], {}) or (shown.when and getattr(model, shown.when) is None)
            if not lacking and (shown.brief or not brief):
                parts = (_part(form, model) for form in shown.parts) if shown.parts else (text(value),)
                yield shown.title, ", ".join(part for part in parts if part)


class _Attributes(dict[str, Any]):
    """A model's attributes for `str.format_map`."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._model = model

    def __missing__(self, name: str) -> Any:
        value = getattr(self._model, name)
        return text(value) if isinstance(value, bool) else value


def _part(form: str, model: Any) -> str:
    try:
        return form.format_map(_Attributes(model))
    except TypeError:  # None has no such format
        return ""


def text(value: Any) -> str:
    """Any value, in a few words."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    return ", ".join(str(item) for item in value) if isinstance(value, (list, tuple)) else str(value)


def duration(seconds: float) -> str:
    """`0.42 s`, `12.3 s`, `3 min 12 s`, `2 h`."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    large, length, small = ("h", 3600, "min") if seconds >= 3600 else ("min", 60, "s")
    rest = int(seconds % length) // (length // 60)
    return f"{int(seconds // length)} {large} {rest} {small}" if rest else f"{int(seconds // length)} {large}"
