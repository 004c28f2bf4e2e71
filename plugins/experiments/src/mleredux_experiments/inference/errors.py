"""Errors of a mean over tasks and runs, for two populations: *these tasks again*, and *tasks like these*.

*These tasks again*: only the seeds change. The published figure is the mean over runs of the whole set ± SEM (ddof 1).
*Tasks like these*: the tasks are a sample too, so the task is the unit (Miller 2024, arXiv:2411.00640, section 2.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
Cells = Sequence[Array]
"""One array of values, one a run, for each task."""


class Interval(NamedTuple):
    """Limits of an interval, in the unit of the value."""

    low: float
    high: float


def means_of(cells: Cells) -> Array:
    """The mean of each task."""
    sizes = np.array([len(values) for values in cells])
    return np.asarray(np.add.reduceat(np.concatenate(cells), np.concatenate([[0], np.cumsum(sizes)[:-1]])) / sizes)


def normal(probability: float) -> float:
    """The standard normal quantile."""
    from scipy.special import ndtri

    return float(ndtri(probability))


def student(probability: float, df: float) -> float:
    """The quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))


def seeds_sem(cells: Cells) -> float | None:
    """Standard error of the mean over tasks if the same tasks were run again with other seeds.

    With the same number K of runs for each task, in order of seeds, this is the published sd(M, ddof=1)/√K of the K
    means over tasks; otherwise √Σ s²_t/K_t / T, its expectation for independent runs.

    Returns:
        None if a task has a single run.
    """
    sizes = {len(values) for values in cells}
    if not sizes or min(sizes) < 2:
        return None
    if len(sizes) == 1:
        means = np.mean(np.stack(list(cells)), axis=0)
        return float(np.std(means, ddof=1) / math.sqrt(len(means)))
    return math.sqrt(sum(np.var(values, ddof=1) / len(values) for values in cells)) / len(cells)


def clustered_se(values: Array, groups: Sequence[Any] | None = None, *, corrected: bool = True) -> float | None:
    """Standard error of a mean whose values are dependent within groups: √Σ_c(Σ_{i∈c}(s_i−s̄))²/N² (Miller 2024, eq. 4).

    Args:
        groups: The group of each value; None: each value is its own group, which gives sd(ddof=1)/√N.
        corrected: Multiply the variance by G/(G−1), as for `cov_type="cluster"` of statsmodels.

    Returns:
        None if there are fewer than two groups.
    """
    _, index = np.unique(np.arange(len(values)) if groups is None else np.asarray(groups), return_inverse=True)
    count = int(index.max()) + 1 if len(values) else 0
    if count < 2:
        return None
    sums = np.bincount(index, weights=values - values.mean())
    variance = float(np.sum(sums**2)) / len(values) ** 2
    return math.sqrt(variance * (count / (count - 1) if corrected else 1.0))


def mean_interval(
    means: Array, bounds: tuple[float, float] | None, alpha: float = 0.05, groups: Sequence[Any] | None = None
) -> Interval | None:
    """Interval of the mean for tasks like these, from the means of the tasks.

    Bounded measures: Wilson's score interval with the effective sample size p(1−p)/SE² (Korn & Graubard 1998), which
    for all-or-nothing tasks is Wilson's own. Others: Student's t with one degree of freedom less than groups.

    Returns:
        None if there are fewer than two tasks or groups.
    """
    count = len(means) if groups is None else len(set(groups))
    se = clustered_se(means, groups, corrected=bounds is None)
    if se is None:
        return None
    mean = float(means.mean())
    if bounds is None:
        half = student(1 - alpha / 2, count - 1) * se
        return Interval(mean - half, mean + half)
    low, high = bounds
    share, width = (mean - low) / (high - low), high - low
    size = share * (1 - share) / (se / width) ** 2 if se > 1e-9 * width else float(count)
    z = normal(1 - alpha / 2)
    middle = (share + z * z / (2 * size)) / (1 + z * z / size)
    half = z * math.sqrt(max(share * (1 - share), 0) / size + z * z / (4 * size * size)) / (1 + z * z / size)
    return Interval(low + width * max(middle - half, 0), low + width * min(middle + half, 1))


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p-values that control the chance of any false alarm (Holm 1979)."""
    return _adjusted(p, lambda rank, count: count - rank, ascending=True)


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Adjusted p-values that control the share of false alarms among alarms (Benjamini & Hochberg 1995)."""
    return _adjusted(p, lambda rank, count: count / (rank + 1), ascending=False)


def _adjusted(p: Sequence[float], factor: Any, *, ascending: bool) -> list[float]:
    """By ranks from 0; monotone from the smallest p upwards, or from the largest downwards."""
    values = np.asarray(p, dtype=float)
    order = np.argsort(values, kind="stable")
    scaled = values[order] * [factor(rank, len(values)) for rank in range(len(values))]
    monotone = np.maximum.accumulate(scaled) if ascending else np.minimum.accumulate(scaled[::-1])[::-1]
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(monotone, 1)
    return [float(value) for value in adjusted]
