"""Findings of runs, the frequency of each category in an arm, and whether it differs between two arms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from mleredux.plugin.artifact import Run

from mleredux_experiments.failures.categories import CATEGORIES, Finding, primary
from mleredux_experiments.inference.errors import Interval, benjamini_hochberg
from mleredux_experiments.inference.resampling import Scale, paired_interval, sign_flip
from mleredux_experiments.results.table import Row, grouped


def find(run: Run) -> list[Finding]:
    """Return the findings of a run, the primary one first; empty if nothing went wrong."""
    from mleredux_experiments.results.sources import read_run

    return list(read_run(run.path, rollouts=True).findings or ())


def counts_by_arm(findings: Iterable[tuple[str, Sequence[Finding]]]) -> dict[str, Counter[str]]:
    """Count the runs of each arm by their primary category; `none` counts runs without one.

    Args:
        findings: The arm and the findings of each run.
    """
    named = grouped((arm, primary(own) or "none") for arm, own in findings)
    return {arm: Counter(categories) for arm, categories in named.items()}


@dataclass(frozen=True)
class FailureCount:
    """Frequency of a category in the runs of an arm.

    Attributes:
        primary: Number of runs with it as the primary failure.
        runs: Number of runs with it among their failures.
        example: One of these runs, with the line that shows the failure.
    """

    category: str
    primary: int
    runs: int
    example: str
    where: str
    line: str


def failure_counts(rows: Iterable[Row]) -> tuple[FailureCount, ...]:
    """Return the failures of an arm's runs, the most frequent primary one first; runs with unknown failures are
    ignored."""
    first: Counter[str] = Counter()
    shown: dict[str, list[tuple[bool, Row, Finding]]] = {}
    for row in rows:
        for number, finding in enumerate(item for item in row.findings or () if not item.overcome):
            first[finding.category] += number == 0
            entries = shown.setdefault(finding.category, [])
            if not entries or entries[-1][1] is not row:  # a category may have several findings in a run
                entries.append((number == 0, row, finding))
    counts = []
    for category, own in shown.items():
        _, row, finding = max(own, key=lambda item: item[0])
        counts.append(FailureCount(category, first[category], len(own), row.run, finding.where, finding.line))
    order = list(CATEGORIES)
    return tuple(sorted(counts, key=lambda count: (-count.primary, -count.runs, order.index(count.category))))


@dataclass(frozen=True)
class FailureDifference:
    """How much more often runs of arm B have a failure than those of arm A, paired by task.

    Attributes:
        a, b: Mean over tasks of the share of runs with the failure, in percent.
        difference: b − a in points: positive if B has the failure more often.
        interval: Interval for tasks like these; None with one task.
        q: p-value by sign flips over tasks, adjusted over categories (Benjamini–Hochberg).
    """

    category: str
    a: float
    b: float
    difference: float
    interval: Interval | None
    q: float


def failure_differences(
    a: Sequence[Row], b: Sequence[Row], tasks: Iterable[str], key: Callable[[Row], str], alpha: float = 0.05
) -> tuple[FailureDifference, ...]:
    """Compare two arms in each category that occurs, over the tasks that they have in common.

    Args:
        key: Returns the name of a run's task, as in `tasks`.

    Returns:
        The differences, the largest first; empty if the failures of a counted run are unknown.
    """
    common = set(tasks)
    own = [[row for row in rows if row.counts and key(row) in common] for rows in (a, b)]
    if any(row.findings is None for rows in own for row in rows):
        return ()
    having = [
        grouped((key(row), {each.category for each in row.findings or () if not each.overcome}) for row in rows)
        for rows in own
    ]
    shared = sorted(having[0].keys() & having[1].keys())
    categories = {name for side in having for task in shared for run in side[task] for name in run}
    shares = []
    for category in (name for name in CATEGORIES if name in categories):
        before, after = (
            100 * np.array([np.mean([category in run for run in side[task]]) for task in shared]) for side in having
        )
        shares.append((category, before, after))
    p = [sign_flip(after - before) for _, before, after in shares]
    rows = []
    for (category, before, after), q in zip(shares, benjamini_hochberg(p), strict=True):
        difference = float((after - before).mean())
        interval = paired_interval(after - before, Scale(100.0, share=True), alpha)
        rows.append(FailureDifference(category, float(before.mean()), float(after.mean()), difference, interval, q))
    return tuple(sorted(rows, key=lambda item: -abs(item.difference)))
