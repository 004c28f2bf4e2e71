"""The value of several attempts at a task: pass@k, pass^k, and the best of k attempts chosen by the agent's own
validation."""

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
