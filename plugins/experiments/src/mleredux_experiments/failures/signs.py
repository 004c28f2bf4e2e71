"""Patterns of error messages, read from `signs.toml`: words, of which a line needs one, and a pattern."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Sign:
    """A family of messages.

    Attributes:
        words: Words in lower case, of which a line needs one. They are searched for first, because that is fast.
        pattern: A pattern that the line must also match, if there is one.
    """

    words: tuple[str, ...]
    pattern: re.Pattern[str] | None = None

    def __call__(self, line: str, small: str) -> bool:
        """Return whether a line, which is also passed in lower case, is such a message."""
        return any(map(small.__contains__, self.words)) and (self.pattern is None or bool(self.pattern.search(line)))


def _sign(told: Mapping[str, Any], fragments: Mapping[str, str]) -> Sign:
    if "errno" in told:
        numbers = "|".join(map(str, told["errno"]))
        pattern = rf"(?:\[?errno(?: =)?|os error|code:) (?:{numbers})\b"
        return Sign(("errno", "os error", "kind:"), re.compile(pattern, re.IGNORECASE))
    words, found = (filled(told.get(name, ""), fragments) for name in ("words", "pattern"))
    return Sign(tuple(words.split("|")), re.compile(found, re.IGNORECASE) if found else None)


def filled(text: str, fragments: Mapping[str, str]) -> str:
    """Return a text with the names of fragments replaced by the fragments, which may contain other fragments."""
    while (filled := re.sub("<([A-Z_]+)>", lambda name: fragments[name[1]], text)) != text:
        text = filled
    return text


def _read() -> dict[str, dict[str, tuple[Sign, ...]]]:
    told = tomllib.loads(files(__package__).joinpath("signs.toml").read_text("utf-8"))
    fragments = told.pop("fragments")
    return {
        category: {kind: tuple(_sign(one, fragments) for one in each) for kind, each in kinds.items()}
        for category, kinds in told.items()
    }


SIGNS = _read()
"""Signs by category and kind."""
