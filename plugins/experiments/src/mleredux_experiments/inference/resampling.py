"""Resampling of paired differences: a calibrated two-level bootstrap, and permutation tests, all vectorised."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from mleredux_experiments.inference.errors import Array, Cells, Interval, means_of, student
from mleredux_experiments.inference.power import Variance

EXACT = 15
"""Up to this many differing tasks, all 2^n sign flips are enumerated."""
DRAWS = 100_000
BOOTSTRAPS = 5_000


def variance_of(a: Cells, b: Cells) -> Variance:
    """The variance components of a paired difference, ω² by the method of moments.

    Without two runs of a task in each arm, all variance counts as between tasks, which is conservative.
    """
    difference = means_of(b) - means_of(a)
    total = float(np.var(difference, ddof=1)) if len(difference) > 1 else 0.0
    within_a, within_b = _pooled(a), _pooled(b)
    if within_a is None or within_b is None:
        return Variance(total, separated=False)
    noise = within_a * _inverse_size(a) + within_b * _inverse_size(b)
    return Variance(max(0.0, total - noise), within_a, within_b)


def _pooled(cells: Cells) -> float | None:
    freedom = sum(len(values) - 1 for values in cells)
    return sum(float(np.var(values)) * len(values) for values in cells) / freedom if freedom else None


def sign_flip(differences: Array, seed: int = 0, draws: int = DRAWS) -> float:
    """Two-sided p-value of a mean of paired differences, by flipping their signs.

    Exact up to `EXACT` differences that are not zero, otherwise by random flips, the observed one counted.
    """
    values = differences[np.abs(differences) > 1e-12]
    if not len(values):
        return 1.0
    observed = abs(values.sum()) * (1 - 1e-9)
    if len(values) <= EXACT:
        signs = 1.0 - 2.0 * ((np.arange(2 ** len(values))[:, None] >> np.arange(len(values))) & 1)
        return float(np.mean(np.abs(signs @ values) >= observed))
    generator, count = np.random.default_rng(seed), len(values)
    words = generator.integers(0, 256, size=(draws, -(-count // 8)), dtype=np.uint8)
    flipped = np.unpackbits(words, axis=1, count=count).astype(np.float32) @ values.astype(np.float32)
    extreme = np.abs(values.sum() - 2 * flipped.astype(np.float64)) >= observed * (1 - 1e-6)
    return float((1 + extreme.sum()) / (draws + 1))


def two_level(a: Cells, b: Cells, alpha: float = 0.05, seed: int = 0) -> Interval | None:
    """Interval of the mean paired difference for tasks like these: tasks are resampled, then runs within them.

    Resampling both levels naively counts the noise of runs twice, and percentiles are too narrow for few tasks.
    Therefore the tasks' differences are shrunken to the variance ω² and the runs' residuals reflated to σ², so that
    their sum has the observed variance (Carpenter, Goldstein & Rasbash 2003), and the percentiles are expanded to match
    Student's t (Hesterberg 2015, section 5.3).

    Returns:
        None if there are fewer than two tasks.
    """
    differences, parts = means_of(b) - means_of(a), variance_of(a, b)
    count = len(differences)
    if count < 2:
        return None
    generator = np.random.default_rng(seed)
    mean, total = float(differences.mean()), float(np.var(differences, ddof=1))
    kept = min(1.0, parts.between / total) if total else 1.0
    most = max(len(values) for values in (*a, *b))
    drawn = generator.integers(0, count, size=(max(1_000, min(BOOTSTRAPS, 2_000_000 // (count * most))), count))
    resampled = mean + math.sqrt(kept) * (differences - mean)[drawn].mean(axis=1)
    if kept < 1:
        noise = _resampled_residuals(b, drawn, generator) - _resampled_residuals(a, drawn, generator)
        expected = (parts.within_a * _inverse_size(a) + parts.within_b * _inverse_size(b)) / count
        resampled += noise * math.sqrt((1 - kept) * total / count / expected)
    tail = _expanded(alpha, count)
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return Interval(float(low), float(high))


def _inverse_size(cells: Cells) -> float:
    return float(np.mean([1 / len(values) for values in cells]))


def _resampled_residuals(cells: Cells, drawn: np.ndarray[Any, Any], generator: np.random.Generator) -> Array:
    """For each resample, the mean over its tasks of the means of resampled, reflated residuals."""
    sizes = np.array([len(values) for values in cells])
    table = np.zeros((len(cells), sizes.max()))
    for number, values in enumerate(cells):
        if len(values) > 1:
            table[number, : len(values)] = (values - values.mean()) * math.sqrt(len(values) / (len(values) - 1))
    total = np.zeros(drawn.shape)
    chosen = sizes[drawn]
    for run in range(sizes.max()):
        picked = table[drawn, (generator.random(drawn.shape, dtype=np.float32) * chosen).astype(np.int64)]
        total += np.where(run < chosen, picked, 0)
    return np.asarray((total / chosen).mean(axis=1))


def _expanded(alpha: float, count: int) -> float:
    """The probability of each tail of a percentile interval that has the width of Student's t."""
    from scipy.special import ndtr

    return float(ndtr(math.sqrt(count / (count - 1)) * student(alpha / 2, count - 1)))


def shuffled(a: Array, b: Array, seed: int = 0) -> float:
    """Two-sided p-value of the difference between two arms' runs on one task, by exchanging runs between the arms.

    Exact for two distinct values (hypergeometric) and up to 1,000 ways to divide the runs, otherwise by 4,000 random
    divisions.
    """
    values, size = np.concatenate([a, b]), len(a)
    expected, observed = values.mean() * size, abs(a.sum() - values.mean() * size) - 1e-9
    low, high, count = values.min(), values.max(), len(values)
    if low == high:
        return 1.0
    if np.all((values == low) | (values == high)):
        ones = int(np.sum(values == high))
        ways = {k: math.comb(ones, k) * math.comb(count - ones, size - k) for k in range(min(ones, size) + 1)}
        extreme = sum(n for k, n in ways.items() if abs(k * high + (size - k) * low - expected) >= observed)
        return extreme / math.comb(count, size)
    if math.comb(count, size) <= 1_000:
        chosen = np.array(list(itertools.combinations(range(count), size)))
        return float(np.mean(np.abs(values[chosen].sum(axis=1) - expected) >= observed))
    order = np.random.default_rng(seed).permuted(np.tile(values, (4_000, 1)), axis=1)
    return float((1 + np.sum(np.abs(order[:, :size].sum(axis=1) - expected) >= observed)) / 4_001)
