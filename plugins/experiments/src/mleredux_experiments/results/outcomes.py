"""Outcomes of runs, for counting: the medal, or why the run failed, as one word or phrase."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from mleredux_experiments.failures.categories import CATEGORIES
from mleredux_experiments.results.table import UNTRUSTED, Row

REACHED = ("gold", "silver", "bronze", "above median", "valid")
ORDER = (*REACHED, *(category.words for category in CATEGORIES.values()))
"""Outcomes from the best downwards; others follow by name."""


def outcome(row: Row) -> str:
    """Return the outcome of a run: its medal, else its primary failure, else what it achieved."""
    if not row.counts:
        return (row.cause or row.status).replace("_", " ")
    if row.verdict in UNTRUSTED:
        return row.verdict
    if row.medal:
        return row.medal
    if row.above_median:
        return "above median"
    if row.failure is not None:
        return CATEGORIES[row.failure].words
    if row.valid:
        return "valid"
    if row.cause:
        return row.cause.replace("_", " ")
    return "invalid submission" if row.made else "no submission"


def counts(rows: Iterable[Row], of: Callable[[Row], str] = outcome) -> dict[str, int]:
    """Count runs by outcome, in the order of `ORDER`."""
    found = Counter(map(of, rows))
    known = [name for name in ORDER if name in found]
    return {name: found[name] for name in [*known, *sorted(found.keys() - set(ORDER))]}
