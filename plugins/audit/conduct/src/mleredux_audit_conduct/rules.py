"""The rules checked by patterns: against names and calls in Python code, line by line elsewhere."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mleredux_rollout import MAX_LINE, Kind, Text

from mleredux_audit_conduct.code import units_of

Severity = Literal["note", "suspicious", "serious"]
MOST_OF_A_RULE = 20
"""Maximum number of listed findings per pattern; the rest is counted."""


@dataclass(frozen=True)
class Finding:
    """Something to inspect.

    Attributes:
        rule: `answers`, `network`, `llm-predictions`, `hand-written`, `copied` or `judge`; or a kind of evidence in the
            verdict on the result: `canary`, `known-answers`, `not-reproducible`, …
        where: A path in the run, or a step of its rollout.
        line: Line number, from 1; None for the file as a whole.
        evidence: The line, verbatim.
        why: A one-sentence explanation.
        more: Number of further lines that show the same.
    """

    rule: str
    severity: Severity
    where: str
    line: int | None
    evidence: str
    why: str
    more: int = 0


@dataclass(frozen=True)
class Pattern:
    """One pattern to search for.

    Attributes:
        strings: Whether strings in Python code match too, regardless of their use.
    """

    rule: str
    severity: Severity
    why: str
    pattern: re.Pattern[str]
    kinds: tuple[Kind, ...] = ("code", "action")
    strings: bool = False

    def lines(self, text: Text) -> Iterator[tuple[int, str]]:
        """Return matching lines with their numbers; lines about our own endpoint never match."""
        units = units_of(text) if text.kind == "code" else None
        if units is None:
            yield from ((n, line) for n, line in text.lines() if self.pattern.search(line) and not _OURS.search(line))
            return
        lines = text.content.splitlines()
        for number, form, content in units:
            match = self.pattern.search(content) if form != "string" or self.strings else None
            # arguments alone prove nothing: `print('requests.get')`
            named = match and (form != "name" or not re.search("['\"]", content[: match.start()]))
            if named and not _OURS.search(content):
                yield number, lines[number - 1][:MAX_LINE] if number <= len(lines) else content


def _patterns() -> tuple[Pattern, ...]:
    """Read the patterns; alternatives of one pattern are joined."""
    read = tomllib.loads(Path(__file__).with_name("patterns.toml").read_text(encoding="utf-8"))
    patterns = []
    for item in read["patterns"]:
        joined = "|".join(f"(?:{form})" for form in item["alternatives"]).replace("{secret}", read["secret"])
        kinds, strings = tuple(item.get("kinds", ("code", "action"))), item.get("strings", False)
        patterns.append(Pattern(item["rule"], item["severity"], item["why"], re.compile(joined), kinds, strings))
    return tuple(patterns)


PATTERNS = _patterns()
_OURS = re.compile(r"(?:localhost|127\.0\.0\.1):5000/|MLEREDUX_VALIDATE_URL|validate\.sh")


def by_patterns(texts: Iterable[Text]) -> Iterator[Finding]:
    """Return lines that match a pattern; each line of code once per pattern, validation requests never."""
    texts = list(texts)
    for pattern in PATTERNS:
        seen: set[str] = set()
        hits: list[Finding] = []
        more = 0
        for text in texts:
            if text.kind not in pattern.kinds:
                continue
            for number, line in pattern.lines(text):
                shown = line.strip()
                if shown in seen:
                    continue
                seen.add(shown)
                if len(hits) < MOST_OF_A_RULE:
                    hits.append(Finding(pattern.rule, pattern.severity, text.where, number, shown[:300], pattern.why))
                else:
                    more += 1
        if hits and more:
            last = hits.pop()
            hits.append(Finding(**{**vars(last), "more": more}))
        yield from hits
