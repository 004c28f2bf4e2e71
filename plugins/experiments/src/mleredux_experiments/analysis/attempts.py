"""The value of several attempts at a task (pass@k, pass^k, the best of k attempts by the agent's own validation), and
how well an agent selects its submission."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mleredux_experiments.inference.errors import Array, Interval, bounded_limits
from mleredux_experiments.results.measures import Measure, cells
from mleredux_experiments.results.table import Row


@dataclass(frozen=True)
class Attempts:
    """Shares of tasks, in percent, by number of attempts k = 1, 2, …

    Attributes:
        any_of: pass@k: at least one of k attempts succeeds.
        all_of: pass^k: all k attempts succeed.
        chosen: Success of the attempt with the best validation score, as measured by the agent; None if unknown.
        interval: Interval of pass@k for tasks like these; never of width zero.
        tasks: Tasks with at least k attempts for the largest k.
    """

    any_of: tuple[float, ...]
    all_of: tuple[float, ...]
    chosen: tuple[float, ...] | None
    interval: tuple[Interval, ...]
    tasks: int


@lru_cache(maxsize=100_000)
def pass_at(n: int, c: int, k: int) -> float:
    """Return the unbiased estimate of pass@k from c successes in n attempts: 1 − C(n−c, k)/C(n, k) (Chen et al.
    2021)."""
    return 1 - math.comb(n - c, k) / math.comb(n, k)


@lru_cache(maxsize=100_000)
def pass_all(n: int, c: int, k: int) -> float:
    """Return the unbiased estimate of pass^k, the probability that all k attempts succeed: C(c, k)/C(n, k) (Yao et al.
    2024)."""
    return math.comb(c, k) / math.comb(n, k)


def attempts(rows: Sequence[Row], measure: Measure, alpha: float = 0.05) -> Attempts | None:
    """Return an arm's statistics for a measure that is a share; None if there are no runs. Every k is averaged over the
    same tasks: the largest k is the smallest number of attempts at any task.
    """
    values = cells(rows, measure)
    if not values or not measure.share:
        return None
    counts = [(len(one), int((one > 0).sum())) for one in values.values()]
    most = min(n for n, _ in counts)
    any_of = np.array([[pass_at(n, c, k) for k in range(1, most + 1)] for n, c in counts])
    all_of = np.array([[pass_all(n, c, k) for k in range(1, most + 1)] for n, c in counts])
    limits = 100 * np.stack(bounded_limits(any_of, (0.0, 1.0), alpha))
    chosen = _chosen(rows, measure, list(values), most)
    return Attempts(
        any_of=_percent(any_of),
        all_of=_percent(all_of),
        chosen=None if chosen is None else _percent(chosen),
        interval=tuple(Interval(float(low), float(high), 1 - alpha) for low, high in limits.T),
        tasks=len(counts),
    )


def _percent(table: Array) -> tuple[float, ...]:
    return tuple(float(100 * value) for value in table.mean(axis=0))


def _chosen(rows: Sequence[Row], measure: Measure, tasks: Sequence[str], most: int) -> Array | None:
    """Return, for each task and k, the mean success of the attempt with the best validation, over all subsets of k
    attempts.

    The attempt of rank r (from 0, the best first) of n is chosen from C(n−1−r, k−1) of the C(n, k) subsets; attempts
    without a measurement rank last.
    """
    found = []
    for task in tasks:
        own = [row for row in rows if row.task == task and row.counts]
        if all(row.validation is None for row in own):
            return None
        sign = -1 if own[0].lower_is_better else 1
        ordered = sorted(own, key=lambda row: -sign * row.validation if row.validation is not None else math.inf)
        success = np.array([(measure.of(row) or 0) > 0 for row in ordered], dtype=float)
        n = len(own)
        chances = [
            sum(math.comb(n - 1 - rank, k - 1) * value for rank, value in enumerate(success)) / math.comb(n, k)
            for k in range(1, most + 1)
        ]
        found.append(chances)
    return np.array(found) if found else None


@dataclass(frozen=True)
class Point:
    """A run's own validation score and test score, scaled so that the median is 0 and gold is 1, comparable across
    tasks."""

    task: str
    run: str
    validation: float
    test: float


@dataclass(frozen=True)
class Selection:
    """How well an arm selects its submissions.

    Attributes:
        points: Runs with their own validation score, on tasks with thresholds.
        gap: Mean over tasks of (validation − test), in units of gold − median; positive if validation is too
            optimistic.
        regret: Mean over tasks of (test score of the best version − test score of the final version), in the same unit.
        medals: Share of runs with a medal, in percent, among runs with versions.
        oracle: The same share if the final version were the one with the best test score.
    """

    points: tuple[Point, ...]
    gap: float | None
    regret: float | None
    medals: float | None
    oracle: float | None


def selection(rows: Sequence[Row]) -> Selection | None:
    """Return the selection statistics of an arm; None if no run has versions or its own validation score."""
    counted = [row for row in rows if row.counts]
    points: list[Point] = []
    gaps: dict[str, list[float]] = {}
    regrets: dict[str, list[float]] = {}
    medals, oracle = [], []
    for row in counted:
        sign = -1 if row.lower_is_better else 1
        scale = abs(row.gold - row.median) if row.gold is not None and row.median is not None else 0.0
        if row.validation is not None and row.score is not None and row.median is not None and scale:
            own, test = (sign * (value - row.median) / scale for value in (row.validation, row.score))
            points.append(Point(row.task, row.run, own, test))
            gaps.setdefault(row.task, []).append(own - test)
        scores = [sign * version.score for version in row.versions if version.valid and version.score is not None]
        if scores:
            best = max(scores)
            medals.append(row.medal is not None)
            oracle.append(row.medal_of(sign * best) is not None)
            if row.score is not None and scale:
                regrets.setdefault(row.task, []).append((best - sign * row.score) / scale)
    if not points and not medals:
        return None
    return Selection(
        points=tuple(points),
        gap=_mean(gaps),
        regret=_mean(regrets),
        medals=100 * float(np.mean(medals)) if medals else None,
        oracle=100 * float(np.mean(oracle)) if oracle else None,
    )


def _mean(values: dict[str, list[float]]) -> float | None:
    """Return the mean over tasks of their means."""
    return float(np.mean([np.mean(own) for own in values.values()])) if values else None
