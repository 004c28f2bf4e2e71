"""How runs end, for counting: one word a run. An analysis of failures replaces these words by finer ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from mleredux_experiments.results import UNTRUSTED, Row

ORDER = ("gold", "silver", "bronze", "above median", "valid", "invalid", "no submission")
"""From the best outcome downwards; others follow by name."""


def outcome(row: Row) -> str:
    """The outcome of a run: its medal, else what it fell short of, else why it failed."""
    if not row.counts:
        return (row.cause or row.status).replace("_", " ")
    if row.verdict in UNTRUSTED:
        return row.verdict
    if row.medal:
        return row.medal
    if row.above_median:
        return "above median"
    if row.valid:
        return "valid"
    if row.cause:
        return row.cause.replace("_", " ")
    return "invalid" if row.made else "no submission"


def counts(rows: Iterable[Row], of: Callable[[Row], str] = outcome) -> dict[str, int]:
    """Number of runs by outcome, in the order of `ORDER`."""
    found = Counter(map(of, rows))
    known = [name for name in ORDER if name in found]
    return {name: found[name] for name in [*known, *sorted(found.keys() - set(ORDER))]}
