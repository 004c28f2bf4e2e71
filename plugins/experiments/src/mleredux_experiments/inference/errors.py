"""Errors of a mean over tasks and runs, for two populations: *these tasks again*, and *tasks like these*.

*These tasks again*: only the seeds change. The published figure is the mean over runs of the whole set ± SEM (ddof 1).
*Tasks like these*: the tasks are a sample too, so the task is the unit (Miller 2024, arXiv:2411.00640, section 2.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
Cells = Sequence[Array]
"""One array of values, one a run, for each task."""


class Interval(NamedTuple):
    """Limits of an interval in the unit of the value, and the level that holds: 0.95 for 95 %."""

    low: float
    high: float
    level: float = 0.95


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


@lru_cache(maxsize=6)
def _weights(count: int) -> Array:
    """Weights of so many values and one more, uniform on the simplex, from quasi-random numbers."""
    from scipy.stats import qmc

    size = max(11, min(15, int(math.log2(2_000_000 / count))))
    drawn = -np.log(np.maximum(qmc.Sobol(count + 1, seed=count).random_base2(size), 1e-300))
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


def padded_means(values: Array, bound: float) -> Array:
    """Weighted means of values and one more at a bound of their measure; weights are uniform on the simplex.

    Their quantiles limit the mean of any bounded distribution, with as few values as there are (Gaffke 2005;
    Learned-Miller & Thomas 2019, arXiv:1905.06208). Of values 0 and 1, these are the limits of Clopper and Pearson; of
    differences −1, 0 and 1, zero is outside where the sign test rejects it.

    Args:
        values: One a task; or a row a task, with several measurements as columns.
    """
    padded = np.concatenate([np.sort(values, axis=0), np.full_like(values[:1], bound)])
    means = _weights(len(values)) @ padded
    return np.asarray(means.clip(padded.min(axis=0), padded.max(axis=0)))


def bounded_limits(values: Array, bounds: tuple[float, float], alpha: float = 0.05) -> tuple[Array, Array]:
    """The limits of the mean of each column of values that have bounds."""
    low, high = (padded_means(values, bound) for bound in bounds)
    place = max(int(alpha / 2 * (len(low) + 1) + 1e-9), 1)
    return np.partition(low, place - 1, axis=0)[place - 1], np.partition(high, -place, axis=0)[-place]


def mean_interval(means: Array, bounds: tuple[float, float] | None, alpha: float = 0.05) -> Interval | None:
    """Interval of the mean for tasks like these, from the means of the tasks; never of width zero with bounds.

    Returns:
        By `bounded_limits`, without bounds by Student's t; None if there are fewer than two tasks.
    """
    if len(means) < 2:
        return None
    if bounds is not None:
        low, high = bounded_limits(np.asarray(means, dtype=float), bounds, alpha)
        return Interval(float(low), float(high), 1 - alpha)
    half, mean = student(1 - alpha / 2, len(means) - 1) * (clustered_se(means) or 0.0), float(means.mean())
    return Interval(mean - half, mean + half, 1 - alpha)


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p-values that control the chance of any false alarm (Holm 1979)."""
    values = np.asarray(p, dtype=float)
    order = np.argsort(values, kind="stable")
    adjusted = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    return [float(value) for value in np.minimum(adjusted, 1)[np.argsort(order)]]


def holm_levels(p: Sequence[float], alpha: float) -> list[float]:
    """The level at which each p-value is tested by Holm's steps; those after the first failure at its level."""
    order, levels = np.argsort(p, kind="stable"), [0.0] * len(p)
    level, failed = alpha / max(len(p), 1), False
    for rank, number in enumerate(order):
        level = level if failed else alpha / (len(p) - rank)
        failed = failed or p[number] > level
        levels[number] = level
    return levels


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Adjusted p-values that control the share of false alarms among alarms (Benjamini & Hochberg 1995)."""
    from scipy.stats import false_discovery_control

    return [float(value) for value in false_discovery_control(p)] if p else []
