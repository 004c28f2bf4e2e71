"""Patterns, read from files, for lines of console output in many languages (`lines.toml`) and for error messages
(`signs.toml`); and measurements that programs print."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from signal import Signals, strsignal
from typing import Any


def filled(text: str, fragments: Mapping[str, str]) -> str:
    """Return text with the names of fragments replaced by the fragments, which may contain other fragments."""
    while (filled := re.sub("<([A-Z_]+)>", lambda name: fragments[name[1]], text)) != text:
        text = filled
    return text


_LINES = tomllib.loads(files(__package__).joinpath("lines.toml").read_text("utf-8"))
PATTERNS = {
    name: re.compile(filled("|".join(each), _LINES["fragments"]), re.MULTILINE)
    for name, each in _LINES["patterns"].items()
}
"""Patterns by purpose."""
WORDS = _LINES["words"].split("|")
"""Words in lower case; each error contains at least one."""
INVALID = {name: re.compile(each, re.IGNORECASE) for name, each in _LINES["invalid"].items()}
"""Messages about invalid submissions, by kind."""
FRAME = " \t|│┃⎿>╎"
"""Characters that consoles and agents print before lines of output."""


def is_error(line: str) -> bool:
    """Return whether a line shows an error."""
    return bool(PATTERNS["class"].match(line) or PATTERNS["command"].match(line))


def is_prose(line: str) -> bool:
    """Return whether a line is a warning, text about possible problems, or prose by an agent."""
    named = PATTERNS["class"].match(line)
    return PATTERNS["prose"].search(line) is not None and (named is None or named[1].endswith("Warning"))


def kind_of(line: str) -> str:
    """Return the exception class in a line that shows an error, the signal, or the words of another message."""
    if signals := [signal.name for signal in Signals if (strsignal(signal) or "-") in line]:
        return signals[0]
    if named := PATTERNS["class"].match(line) or PATTERNS["thrown"].search(line) or PATTERNS["shell"].search(line):
        return named[1]
    return re.split(r"[:(\n]| at \S+ line \d", PATTERNS["level"].sub("", line))[0].strip()[:60] or line[:60]


def measurements(metric: str, text: str) -> list[float]:
    """Return the values of a metric that programs print; only those labeled as measured on held-out rows if there are
    any, else all."""
    known = (each for name, each in _LINES["metrics"].items() if name in metric.lower())
    names = next(known, re.sub(r"[\W_]+", ".?", metric))
    value = r"(-?\d+\.?\d*(?:e-?\d+)?)(?=[\s,;)%|±+]|$)"
    name = rf"(?im)(?:^|[\s_(/-])(?:{names}|(?:cv|oof|val\w*|mean|best).score)\b(?: \([^)\n]{{0,40}}\))?"
    shown = rf"{name}(?:[^\w\n]|is|of|on|the|validation|fold|score|mean){{0,12}}?[:= \t]{value}"
    values: dict[bool, list[float]] = {True: [], False: []}
    for match in re.finditer(shown, text):
        before = text[text.rfind("\n", 0, match.start() + 1) + 1 : match.start(1)][-60:].rpartition("train")[2]
        values[PATTERNS["held_out"].search(before) is not None].append(float(match[1]))
    return values[True] or values[False]


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


def _sign(declared: Mapping[str, Any], fragments: Mapping[str, str]) -> Sign:
    if "errno" in declared:
        numbers = "|".join(map(str, declared["errno"]))
        pattern = rf"(?:\[?errno(?: =)?|os error|code:) (?:{numbers})\b"
        return Sign(("errno", "os error", "kind:"), re.compile(pattern, re.IGNORECASE))
    words, pattern = (filled(declared.get(name, ""), fragments) for name in ("words", "pattern"))
    return Sign(tuple(words.split("|")), re.compile(pattern, re.IGNORECASE) if pattern else None)


def _read() -> dict[str, dict[str, tuple[Sign, ...]]]:
    document = tomllib.loads(files(__package__).joinpath("signs.toml").read_text("utf-8"))
    fragments = document.pop("fragments")
    return {
        category: {kind: tuple(_sign(sign, fragments) for sign in each) for kind, each in kinds.items()}
        for category, kinds in document.items()
    }


SIGNS = _read()
"""Signs by category and kind."""
