"""Power of the test used in comparisons: the tasks or seeds needed for a difference, and the difference that a design
detects; or the margin within which it shows that equal arms are equivalent.

The test is that of the comparison: sign flips over tasks. For up to 12 tasks (up to 30 for shares, whose differences
take few values), its power is simulated with all flips. With more tasks, the test has the power of Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from mleredux_experiments.inference.errors import Array, Cells, means_of, student
from mleredux_experiments.inference.resampling import Evidence, Scale, subsets

_FEW, _FEW_SHARES = 12, 30
_SAMPLES, _FLIPS, _EQUAL = 1_000, 2_000, 200
_MOST = 100_000
"""Maximum number of tasks in a plan."""
_MOST_SEEDS = 100
_STEPS = 8
"""Maximum number of simulated steps of a share's difference between 0 and 100; beyond that, it is practically
continuous."""


@dataclass(frozen=True)
class Variance:
    """The variance of a paired difference.

    Attributes:
        between: ω², the variance of the true difference between tasks.
        within_a: σ²_A, the variance between runs of arm A on one task.
        within_b: σ²_B, the same for arm B.
        separated: Whether the two kinds can be distinguished: each arm has several runs of some task.
    """

    between: float
    within_a: float = 0.0
    within_b: float = 0.0
    separated: bool = True

    def of_mean(self, seeds: float) -> float:
        """Return the variance of a task's difference with this number of seeds in each arm."""
        return self.between + (self.within_a + self.within_b) / seeds


def variance_of(a: Cells, b: Cells) -> Variance:
    """Estimate the variance components of a paired difference, ω² by the method of moments.

    Without two runs of a task in each arm, all variance counts as variance between tasks, which is conservative.
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


def _inverse_size(cells: Cells) -> float:
    return float(np.mean([1 / len(values) for values in cells]))


def least_tasks(alpha: float) -> int:
    """Return the smallest number of tasks for which the test can be significant: the two most extreme of all 2^n flips
    set the smallest p-value."""
    return math.ceil(1 - math.log2(alpha) - 1e-9)


@dataclass(frozen=True)
class Sample:
    """The size of a comparison.

    Attributes:
        seeds: Number of runs per task and arm.
        reach: The largest difference that the measure allows; None: unbounded.
        share: Whether a run's value is either 0 or `reach`.
        equivalence: Whether the question is if the arms differ by less than a margin, instead of if they differ.
    """

    variance: Variance
    tasks: int
    seeds: float
    alpha: float = 0.05
    power: float = 0.8
    reach: float | None = None
    share: bool = False
    equivalence: bool = False

    @property
    def least(self) -> int:
        """Return the smallest number of tasks at which the question can be decided."""
        return least_tasks(self.alpha * (1 + self.equivalence))

    @property
    def goal(self) -> str:
        """Return what the design detects, in words that precede an amount."""
        return "equivalence within " if self.equivalence else ""

    @property
    def nothing(self) -> str:
        """Return, in words, that a design detects nothing."""
        return "equivalence within no margin" if self.equivalence else "no difference"

    def chance(self, difference: float) -> float:
        """Return the probability that a true difference is detected, or that equal arms are shown to be equivalent
        within it."""
        scale = self.reach or 1.0
        spread = math.sqrt(self.variance.of_mean(self.seeds)) / scale
        steps = min(max(round(self.seeds), 1), _STEPS) if self.share else 0
        if self.equivalence:
            margins = _margins(round(spread, 9), self.tasks, self.alpha, steps, self.reach is not None)
            return float(np.mean(margins <= difference / scale + 1e-9)) if self.tasks >= self.least else 0.0
        return _chance(round(abs(difference) / scale, 9), round(spread, 9), self.tasks, self.alpha, steps)

    @property
    def detectable(self) -> float | None:
        """Return the smallest difference (or margin of equivalence) that is detected with the desired power; None if
        no possible one is."""
        spread = math.sqrt(self.variance.of_mean(self.seeds))
        high = self.reach or 8 * spread
        if not spread or self.tasks < self.least or self.chance(high) < self.power:
            return None
        low = 0.0
        while high - low > 0.01 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.chance(middle) >= self.power else (middle, high)
        return high

    def tasks_for(self, difference: float) -> int | None:
        """Return the smallest number of tasks that detects a difference; None if it exceeds the maximum."""
        return _smallest(self.least, _MOST, lambda n: replace(self, tasks=n).chance(difference) >= self.power)

    def seeds_for(self, difference: float) -> int | None:
        """Return the smallest number of seeds that detects a difference on these tasks; None if no number does."""
        return _smallest(1, _MOST_SEEDS, lambda n: replace(self, seeds=n).chance(difference) >= self.power)


def _smallest(low: int, most: int, suffices: Callable[[int], bool]) -> int | None:
    high = low
    while not suffices(high):
        if high >= most:
            return None
        low, high = high + 1, min(2 * high, most)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle + 1, high)
    return high


@lru_cache(maxsize=10_000)
def _chance(difference: float, spread: float, tasks: int, alpha: float, steps: int) -> float:
    if tasks < least_tasks(alpha):
        return 0.0
    if not spread:
        return float(difference > 0)
    if tasks > (_FEW_SHARES if steps else _FEW):
        return _by_student(difference / spread * math.sqrt(tasks), tasks - 1, alpha)
    if not steps:
        effect = difference / spread
        limits = _normal_limits(tasks, alpha)
        return float(np.mean(limits > -effect) + np.mean(limits > effect))
    values = _lattice_values(difference, spread, steps, tasks)
    flipped = values @ _some_subsets(tasks, max(_FLIPS, int(100 / alpha))).T
    most = alpha / 2 * (flipped.shape[1] + 1) - 1
    return float(np.mean([np.sum(side <= 1e-6, axis=1) <= most for side in (flipped, -flipped)]) * 2)


@lru_cache(maxsize=100)
def _margins(spread: float, tasks: int, alpha: float, steps: int, bounded: bool) -> Array:
    """Return for samples of equal arms the smallest margin within which they are shown to be equivalent."""
    if steps:
        values = _lattice_values(0.0, spread, steps, tasks)[:_EQUAL].astype(float)
    else:
        values = np.random.default_rng(tasks).normal(scale=spread, size=(_EQUAL, tasks))
    scale = Scale(1.0 if bounded else None, steps > 0)
    found = (Evidence.of(one, scale).interval(2 * alpha, p=1.0) for one in values)
    return np.array([max(-one.low, one.high) for one in found])


@lru_cache(maxsize=8)
def _some_subsets(tasks: int, enough: int) -> Array:
    flips = subsets(tasks)
    return flips[np.random.default_rng(tasks).permutation(len(flips))[:enough]] if len(flips) > 2 * enough else flips


def _by_student(shift: float, freedom: int, alpha: float) -> float:
    from scipy.special import nctdtr

    bound = student(1 - alpha / 2, freedom)
    return 1.0 if shift > bound + 8 else float(1 - nctdtr(freedom, shift, bound) + nctdtr(freedom, shift, -bound))


@lru_cache(maxsize=100)
def _normal_limits(tasks: int, alpha: float) -> Array:
    """Return the lower interval limits of standard normal samples: a shifted sample is rejected if its limit exceeds
    0."""
    flips = subsets(tasks)
    samples = np.random.default_rng(tasks).normal(size=(_SAMPLES, tasks)).astype(np.float32)
    means = samples @ (flips / flips.sum(axis=1, keepdims=True)).T
    place = int(alpha / 2 * (len(flips) + 1) + 1e-9) - 1
    return np.asarray(np.partition(means, place, axis=1)[:, place])


def _lattice_values(difference: float, spread: float, steps: int, tasks: int) -> Array:
    """Draw differences of two shares of `steps` runs, with a given mean and variance and maximum entropy.

    Entropy is relative to the distribution of the differences if both shares follow Jeffreys' prior, as agents often
    succeed on a task in all of their runs or in none.
    """
    from scipy.optimize import minimize
    from scipy.special import logsumexp, softmax
    from scipy.stats import betabinom

    share = betabinom(steps, 0.5, 0.5).pmf(np.arange(steps + 1))
    prior = np.log(np.convolve(share, share[::-1]))

    points, difference = np.linspace(-1, 1, 2 * steps + 1), min(difference, 0.99)
    part = difference * steps % 1
    least, most = part * (1 - part) / steps**2, 1 - difference**2
    variance = min(max(spread**2, least + 0.02 * (most - least)), most - 0.02 * (most - least))
    goal = np.array([difference, variance + difference**2])
    powers = np.stack([points, points**2])
    start = np.array([difference / variance, -0.5 / variance])
    found = minimize(
        lambda x: float(logsumexp(x @ powers + prior) - x @ goal),
        start,
        jac=lambda x: powers @ softmax(x @ powers + prior) - goal,
    ).x
    bounds = np.cumsum(softmax(found @ powers + prior))
    drawn = np.random.default_rng(tasks).random((_SAMPLES * 2 // 5, tasks), dtype=np.float32)
    return np.asarray(points[np.searchsorted(bounds[:-1], drawn)], dtype=np.float32)
