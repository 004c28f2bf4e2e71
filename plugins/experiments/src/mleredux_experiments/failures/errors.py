"""Patterns for lines of console output in many languages, read from `lines.toml`, and for measurements that programs
print."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from signal import Signals, strsignal

from mleredux_experiments.failures.signs import filled

_TOLD = tomllib.loads(files(__package__).joinpath("lines.toml").read_text("utf-8"))
PATTERNS = {
    name: re.compile(filled("|".join(each), _TOLD["fragments"]), re.MULTILINE)
    for name, each in _TOLD["patterns"].items()
}
"""Patterns by purpose."""
WORDS = _TOLD["words"].split("|")
"""Words in lower case; each error contains at least one."""
INVALID = {name: re.compile(each, re.IGNORECASE) for name, each in _TOLD["invalid"].items()}
"""Messages about invalid submissions, by kind."""
FRAME = " \t|│┃⎿>╎"
"""Characters that consoles and agents print before lines of output."""


def is_error(line: str) -> bool:
    """Return whether a line shows an error."""
    return bool(PATTERNS["class"].match(line) or PATTERNS["command"].match(line))


def is_prose(line: str) -> bool:
    """Return whether a line is a warning, a text about possible problems, or prose by an agent."""
    named = PATTERNS["class"].match(line)
    return PATTERNS["prose"].search(line) is not None and (named is None or named[1].endswith("Warning"))


def kind_of(line: str) -> str:
    """Return the exception class in a line that shows an error, the signal, or the words of another message."""
    if signals := [one.name for one in Signals if (strsignal(one) or "-") in line]:
        return signals[0]
    if named := PATTERNS["class"].match(line) or PATTERNS["thrown"].search(line) or PATTERNS["shell"].search(line):
        return named[1]
    return re.split(r"[:(\n]| at \S+ line \d", PATTERNS["level"].sub("", line))[0].strip()[:60] or line[:60]


def measurements(metric: str, text: str) -> list[float]:
    """Return the values of a metric that programs print; only those labeled as measured on held-out rows if there are
    any, else all."""
    known = (each for name, each in _TOLD["metrics"].items() if name in metric.lower())
    names = next(known, re.sub(r"[\W_]+", ".?", metric))
    value = r"(-?\d+\.?\d*(?:e-?\d+)?)(?=[\s,;)%|±+]|$)"
    name = rf"(?im)(?:^|[\s_(/-])(?:{names}|(?:cv|oof|val\w*|mean|best).score)\b(?: \([^)\n]{{0,40}}\))?"
    shown = rf"{name}(?:[^\w\n]|is|of|on|the|validation|fold|score|mean){{0,12}}?[:= \t]{value}"
    found: dict[bool, list[float]] = {True: [], False: []}
    for one in re.finditer(shown, text):
        before = text[text.rfind("\n", 0, one.start() + 1) + 1 : one.start(1)][-60:].rpartition("train")[2]
        found[PATTERNS["held_out"].search(before) is not None].append(float(one[1]))
    return found[True] or found[False]
