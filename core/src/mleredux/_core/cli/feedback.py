"""Feedback on a graded document: each question, what was answered, what holds and why, and its points."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Mapping
from typing import Any

import click

from mleredux._core.cli.output import safe

_INDENT = "    "
_MAX_CHARACTERS = 400


def print_feedback(details: Mapping[str, Any]) -> None:
    """Print the parts of a score, as the details of a report hold them; nothing for reports without parts.

    Args:
        details: Sections by name, each with `score` and `parts`; a part has `name`, `score`, `weight`, `explanation`,
            and a `value`, which may hold what was `given` and what is `true`.
    """
    for name, section in details.items():
        parts = section.get("parts") if isinstance(section, Mapping) else None
        if not isinstance(parts, list) or not parts:
            continue
        score = section.get("score")
        click.echo(f"\n{click.style(safe(name), bold=True)}" + (f"  {score:.3f}" if score is not None else ""))
        for part in parts:
            _print_part(part)


def _print_part(part: Mapping[str, Any]) -> None:
    score, weight, value = part.get("score"), part.get("weight"), part.get("value")
    points = f"{score * weight:.2f} of {weight:.2f} points" if score is not None and weight is not None else ""
    click.echo(f"  {safe(str(part['name']))}  {points}".rstrip())
    answered = value if isinstance(value, Mapping) and {"given", "true"} & set(value) else {}
    for label, key in (("answered", "given"), ("holds", "true")):
        if key in answered:
            _print_wrapped(f"{label}: {_short(answered[key])}")
    if part.get("explanation"):
        _print_wrapped(safe(str(part["explanation"])))


def _print_wrapped(text: str) -> None:
    width = min(max(shutil.get_terminal_size().columns, 40), 120)
    click.echo(textwrap.fill(text, width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False))


def _short(value: Any) -> str:
    if value in (None, "", [], {}):
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = safe(" ".join(text.split()))
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"
