"""Permutation tests of paired differences, and the intervals that agree with them."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from mleredux_experiments.inference.errors import Array, Interval, padded_means

EXACT = 15
"""Maximum number of differing tasks for which all 2^n sign flips are enumerated."""
_SUBSETS = 20_000
_TIE = 1e-12


def sign_flip(differences: Array) -> float:
    """Return the two-sided p-value of a mean of paired differences, by flipping their signs.

    The test is exact for up to `EXACT` nonzero differences, and otherwise uses random flips, counting the observed
    ones.
    """
    values = differences[np.abs(differences) > _TIE]
    if not len(values):
        return 1.0
    sums = subsets(len(values)) @ values
    tie = 1e-9 * float(np.abs(values).sum())
    extreme = min(np.sum(sums <= tie), np.sum(sums >= -tie))
    return float(min(2 * (1 + extreme) / (len(sums) + 1), 1.0))


class Scale(NamedTuple):
    """The scale of a measure.

    Attributes:
        reach: The largest possible difference; None: unbounded.
        share: Whether a run's value is either 0 or `reach`.
    """

    reach: float | None = None
    share: bool = False


@dataclass(frozen=True)
class Evidence:
    """All one-sided tests of a mean of paired differences over tasks, and thus its intervals.

    Attributes:
        low, high: Reference means. The p-value against a mean of at most a value is the share of `low` that is not
            above the value; against a mean of at least a value, the share of `high` that is not below it.
    """

    low: Array
    high: Array

    @classmethod
    def of(cls, differences: Array, scale: Scale) -> Evidence:
        """Compute the evidence by sign flips: the means of all subsets of the differences divide the line evenly
        (Hartigan 1969).

        Differences of shares take few values, and ties make sign flips inaccurate; for these, `padded_means` are used.
        """
        reach = scale.reach
        if reach is not None and (scale.share or zeros(differences) is not None):
            return cls(padded_means(differences, -reach), padded_means(differences, reach))
        chosen = subsets(len(differences))
        means = chosen @ differences / chosen.sum(axis=1)
        return cls(means, means)

    def above(self, value: float) -> float:
        """Return the p-value of the hypothesis that the mean is at most this value."""
        return float((1 + np.sum(self.low <= value + _TIE)) / (len(self.low) + 1))

    def below(self, value: float) -> float:
        """Return the p-value of the hypothesis that the mean is at least this value."""
        return float((1 + np.sum(self.high >= value - _TIE)) / (len(self.high) + 1))

    def interval(self, alpha: float, p: float) -> Interval:
        """Return the interval at this level, or at the highest level possible with few tasks.

        Args:
            p: p-value of the test that the mean is zero; the interval contains zero if and only if this test does not
                reject it.
        """
        place = max(int(alpha / 2 * (len(self.low) + 1) + 1e-9), 1)
        level = min(1 - alpha, 1 - 2 / (len(self.low) + 1))
        low = float(np.partition(self.low, place - 1)[place - 1])
        high = float(np.partition(self.high, -place)[-place])
        if p > 1 - level + 1e-9:
            return Interval(min(low, 0.0), max(high, 0.0), level)
        if low <= 0 <= high:
            low, high = (low, -_TIE) if -low > high else (_TIE, high)
        return Interval(low, high, level)


def zeros(differences: Array) -> float | None:
    """Return the share of zeros in tied differences: most are equal, or more than a quarter (and at least two) are
    zero. None if they are not tied. The share is below 1, because other tasks may differ."""
    same = np.abs(differences) < _TIE
    alike = int(np.unique(differences.round(9), return_counts=True)[1].max())
    tied = 2 * alike > len(differences) or (same.sum() > 1 and 4 * same.sum() > len(differences))
    return min(float(same.mean()), len(same) / (len(same) + 1)) if tied else None


def paired_interval(differences: Array, scale: Scale, alpha: float) -> Interval | None:
    """Return the interval of a mean paired difference for tasks like these; None with one task."""
    if len(differences) < 2:
        return None
    return Evidence.of(differences, scale).interval(alpha, sign_flip(differences))


@lru_cache(maxsize=8)
def subsets(count: int) -> Array:
    """Return subsets as rows of 0 and 1: all nonempty ones for up to `EXACT` elements, otherwise random ones."""
    if count <= EXACT:
        return ((np.arange(1, 2**count)[:, None] >> np.arange(count)) & 1).astype(float)
    draws = max(4_000, min(_SUBSETS, 2_000_000 // count))
    drawn = np.random.default_rng(count).random((draws, count), dtype=np.float32) < 0.5
    return np.asarray(drawn[drawn.any(axis=1)], dtype=float)


def shuffled(a: Array, b: Array, seed: int = 0) -> float:
    """Return the two-sided p-value of the difference between two arms on one task, by exchanging runs between the arms.

    The test is exact for two distinct values (hypergeometric) and for up to 1,000 divisions of the runs; otherwise, it
    uses 4,000 random divisions.
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
