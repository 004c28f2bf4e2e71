"""Errors of a mean over tasks and runs, for two populations: *these tasks again*, and *tasks like these*.

*These tasks again*: only the seeds change. The published figure is the mean over runs of the whole set ± SEM (ddof 1).
*Tasks like these*: the tasks are also a sample, so the task is the unit (Miller 2024, arXiv:2411.00640, section 2.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
TIE = 1e-12
"""Smaller differences are rounding errors."""
Cells = Sequence[Array]
"""For each task, an array with one value per run."""


class Interval(NamedTuple):
    """Limits of an interval in the unit of the value, and its actual level: 0.95 for 95 %."""

    low: float
    high: float
    level: float = 0.95


def means_of(cells: Cells) -> Array:
    """Return the mean of each task."""
    sizes = np.array([len(values) for values in cells])
    return np.asarray(np.add.reduceat(np.concatenate(cells), np.concatenate([[0], np.cumsum(sizes)[:-1]])) / sizes)


def improvement(a: Array, b: Array) -> float:
    """Return U/(K_A·K_B), the probability that a run of B is better, counting ties half (Agarwal et al. 2021,
    arXiv:2108.13264)."""
    delta = b[:, None] - a[None, :]
    return float(np.mean((delta > TIE) + 0.5 * (np.abs(delta) <= TIE)))


def student(probability: float, df: float) -> float:
    """Return the quantile of Student's t distribution."""
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))


def seeds_sem(cells: Cells) -> float | None:
    """Return the standard error of the mean over tasks if the same tasks were run again with other seeds.

    If each task has the same number K of runs, in order of seeds, this is the published sd(M, ddof=1)/√K of the K means
    over tasks; otherwise it is √Σ s²_t/K_t / T, its expected value for independent runs.

    Returns:
        The standard error, or None if a task has a single run.
    """
    sizes = {len(values) for values in cells}
    if not sizes or min(sizes) < 2:
        return None
    if len(sizes) == 1:
        means = np.mean(np.stack(list(cells)), axis=0)
        return float(np.std(means, ddof=1) / math.sqrt(len(means)))
    return math.sqrt(sum(np.var(values, ddof=1) / len(values) for values in cells)) / len(cells)


def clustered_se(values: Array, groups: Sequence[Any] | None = None, *, corrected: bool = True) -> float | None:
    """Return the standard error of a mean of values that are dependent within groups: √Σ_c(Σ_{i∈c}(s_i−s̄))²/N² (Miller
    2024, eq. 4).

    Args:
        groups: The group of each value; None: each value is its own group, which gives sd(ddof=1)/√N.
        corrected: Whether to multiply the variance by G/(G−1), as for `cov_type="cluster"` in statsmodels.

    Returns:
        The standard error, or None if there are fewer than two groups.
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
    """Return weights for this number of values and one more, uniform on the simplex, from quasi-random numbers."""
    from scipy.stats import qmc

    size = max(11, min(15, int(math.log2(2_000_000 / count))))
    drawn = -np.log(np.maximum(qmc.Sobol(count + 1, seed=count).random_base2(size), 1e-300))
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


def padded_means(values: Array, bound: float, most: int | None = None) -> Array:
    """Return weighted means of the values and one more value at a bound of the measure, with weights uniform on the
    simplex.

    Their quantiles are confidence limits for the mean of any bounded distribution, at any sample size (Gaffke 2005;
    Learned-Miller & Thomas 2019, arXiv:1905.06208). For values of 0 and 1, these are Clopper and Pearson's limits;
    for differences of −1, 0 and 1, they exclude zero where the sign test rejects it.

    Args:
        values: One value per task, or one row per task with several measurements as columns.
        most: The largest number of means; None: as many as decisions use.
    """
    padded = np.concatenate([np.sort(values, axis=0), np.full_like(values[:1], bound)])
    means = _weights(len(values))[:most] @ padded
    return np.asarray(means.clip(padded.min(axis=0), padded.max(axis=0)))


def bounded_limits(
    values: Array, bounds: tuple[float, float], alpha: float = 0.05, most: int | None = None
) -> tuple[Array, Array]:
    """Return the confidence limits of the mean of each column of bounded values, by `padded_means`."""
    low, high = (padded_means(values, bound, most) for bound in bounds)
    place = max(int(alpha / 2 * (len(low) + 1) + 1e-9), 1)
    return np.partition(low, place - 1, axis=0)[place - 1], np.partition(high, -place, axis=0)[-place]


def mean_interval(means: Array, bounds: tuple[float, float] | None, alpha: float = 0.05) -> Interval | None:
    """Return the interval of the mean for tasks like these from the means of the tasks; with bounds, its width is never
    zero.

    Returns:
        The interval by `bounded_limits`, or by Student's t without bounds; None if there are fewer than two tasks.
    """
    if len(means) < 2:
        return None
    if bounds is not None:
        low, high = bounded_limits(np.asarray(means, dtype=float), bounds, alpha)
        return Interval(float(low), float(high), 1 - alpha)
    half, mean = student(1 - alpha / 2, len(means) - 1) * (clustered_se(means) or 0.0), float(means.mean())
    return Interval(mean - half, mean + half, 1 - alpha)


def holm(p: Sequence[float]) -> list[float]:
    """Adjust p-values to control the probability of any false positive (Holm 1979)."""
    values = np.asarray(p, dtype=float)
    order = np.argsort(values, kind="stable")
    adjusted = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    return [float(value) for value in np.minimum(adjusted, 1)[np.argsort(order)]]


def holm_levels(p: Sequence[float], alpha: float) -> list[float]:
    """Return the level at which Holm's steps test each p-value; those after the first non-rejection are tested at its
    level."""
    order, levels = np.argsort(p, kind="stable"), [0.0] * len(p)
    level, failed = alpha / max(len(p), 1), False
    for rank, number in enumerate(order):
        level = level if failed else alpha / (len(p) - rank)
        failed = failed or p[number] > level
        levels[number] = level
    return levels


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Adjust p-values to control the false discovery rate (Benjamini & Hochberg 1995)."""
    from scipy.stats import false_discovery_control

    return [float(value) for value in false_discovery_control(p)] if p else []
