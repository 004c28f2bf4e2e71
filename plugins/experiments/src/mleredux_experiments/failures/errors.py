"""What lines of consoles look like, in many languages, read from `lines.toml`; and measurements that programs print."""

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
"""By what they are for."""
WORDS = _TOLD["words"].split("|")
"""Each error has one of these, in small letters."""
INVALID = {name: re.compile(each, re.IGNORECASE) for name, each in _TOLD["invalid"].items()}
"""Messages on invalid submissions by kind."""
FRAME = " \t|│┃⎿>╎"
"""What consoles and agents put before the lines of an output."""


def is_error(line: str) -> bool:
    """Whether a line shows an error."""
    return bool(PATTERNS["class"].match(line) or PATTERNS["command"].match(line))


def is_prose(line: str) -> bool:
    """Whether a line is a warning, a text on what may happen, or what an agent says."""
    named = PATTERNS["class"].match(line)
    return PATTERNS["prose"].search(line) is not None and (named is None or named[1].endswith("Warning"))


def kind_of(line: str) -> str:
    """The class of the exception of a line that shows an error, a signal, or the words of another message."""
    if signals := [one.name for one in Signals if (strsignal(one) or "-") in line]:
        return signals[0]
    if named := PATTERNS["class"].match(line) or PATTERNS["thrown"].search(line) or PATTERNS["shell"].search(line):
        return named[1]
    return re.split(r"[:(\n]| at \S+ line \d", PATTERNS["level"].sub("", line))[0].strip()[:60] or line[:60]


def measurements(metric: str, text: str) -> list[float]:
    """The values of a metric that programs print: on held-out rows if they say so of any, else all."""
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
