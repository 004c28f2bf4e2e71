"""Scores of arms on each task, which comparisons show first whatever their measure; and outcomes of runs, to be
counted: the medal, or the reason for failure, as one word or phrase."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from mleredux_experiments.failures.categories import CATEGORIES
from mleredux_experiments.results.table import UNTRUSTED, Row, grouped

REACHED = ("gold", "silver", "bronze", "above median", "valid")
ORDER = (*REACHED, *(category.words for category in CATEGORIES.values()))
"""Outcomes from the best downward; others follow by name."""
_TIE = 1e-12
_LONG = 1e9
"""Larger scores are written in exponential notation."""


@dataclass(frozen=True)
class ArmScore:
    """The runs of an arm on a task.

    Attributes:
        mean: Mean score; None if no run has a finite score.
        spread: Standard deviation of the scores (n − 1 in the denominator); None for fewer than two scores.
        scored: Number of runs with a finite score.
        runs: Number of runs that count.
        percentile: Mean over runs, counting failures as 0; None without runs or a leaderboard.
        medals: Number of runs with a medal.
    """

    arm: str
    mean: float | None
    spread: float | None
    scored: int
    runs: int
    percentile: float | None
    medals: int

    @property
    def text(self) -> str:
        """Return mean, spread and number of runs as text, such as `0.95556 ± 0.00123 (3)`."""
        count = f"({self.runs})" if self.scored == self.runs else f"({self.scored} of {self.runs})"
        if self.mean is None:
            return f"– {count}"
        error = "" if self.spread is None else f" ± {number(self.spread)}"
        return f"{number(self.mean)}{error} {count}"


@dataclass(frozen=True)
class TaskScores:
    """The scores of arms on a task, in the order of the arms.

    Attributes:
        better: The arm with the best mean; None if it is tied, has more runs without a score, or no other arm has runs.
    """

    task: str
    lower_is_better: bool
    better: str | None
    arms: tuple[ArmScore, ...]


def number(score: float) -> str:
    """Return a score with five decimals, rounded as in reports."""
    return f"{score:.5e}" if abs(score) >= _LONG else f"{score:.5f}"


def task_scores(
    arms: Mapping[str, Sequence[Row]], key: Callable[[Row], str] = lambda row: row.task
) -> tuple[TaskScores, ...]:
    """Return the scores of arms by task.

    Args:
        arms: Runs by arm.
        key: Returns the key by which tasks of different arms are matched.
    """
    by_task = {arm: grouped((key(row), row) for row in rows if row.counts) for arm, rows in arms.items()}
    tasks = sorted({task for own in by_task.values() for task in own})
    return tuple(_on_task(task, {arm: own.get(task, []) for arm, own in by_task.items()}) for task in tasks)


def _on_task(task: str, arms: Mapping[str, Sequence[Row]]) -> TaskScores:
    lower = any(row.lower_is_better for rows in arms.values() for row in rows)
    ranked = any(row.percentile is not None for rows in arms.values() for row in rows)
    scores = tuple(_of_arm(arm, rows, ranked) for arm, rows in arms.items())
    order = sorted((score.mean * (1 if lower else -1), score.arm) for score in scores if score.mean is not None)
    tied = len(order) > 1 and order[1][0] - order[0][0] <= _TIE
    best = next((score for score in scores if order and not tied and score.arm == order[0][1]), None)
    shares = [score.scored / score.runs for score in scores if score.runs]
    better = best.arm if best is not None and len(shares) > 1 and best.scored / best.runs >= max(shares) else None
    return TaskScores(task, lower, better, scores)


def _of_arm(arm: str, rows: Sequence[Row], ranked: bool) -> ArmScore:
    scores = [row.score for row in rows if row.score is not None and math.isfinite(row.score)]
    percentiles = [row.percentile or 0.0 for row in rows if ranked]
    return ArmScore(
        arm=arm,
        mean=fmean(scores) if scores else None,
        spread=stdev(scores) if len(scores) > 1 else None,
        scored=len(scores),
        runs=len(rows),
        percentile=fmean(percentiles) if percentiles else None,
        medals=sum(row.medal is not None for row in rows),
    )


def outcome(row: Row) -> str:
    """Return the outcome of a run: its medal, else its primary failure, else its result."""
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
    return "invalid submission" if row.submitted else "no submission"


def counts(rows: Iterable[Row], name_of: Callable[[Row], str] = outcome) -> dict[str, int]:
    """Count runs by outcome, in the order of `ORDER`."""
    counter = Counter(map(name_of, rows))
    known = [name for name in ORDER if name in counter]
    return {name: counter[name] for name in [*known, *sorted(counter.keys() - set(ORDER))]}
