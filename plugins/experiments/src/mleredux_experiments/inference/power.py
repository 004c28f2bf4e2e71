"""Power of the decision of a comparison: the tasks or seeds needed to detect a difference, and the difference that a
design detects; or the margin within which it shows that equal arms are equivalent, or that one is not inferior.

The tests are those of the comparison. For up to 12 tasks (up to 30 for shares), the power of sign flips is simulated
with all flips; with more tasks, the test has the power of Student's t. Decisions within a margin are simulated. A
variance that is estimated from few tasks is uncertain, and so are the figures derived from it: `Sample.range` has the
limits.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from mleredux.models.formats import counted, plain

from mleredux_experiments.inference.errors import Array, Cells, bounded_limits, means_of, student
from mleredux_experiments.inference.resampling import subsets, zeros

_FEW, _FEW_SHARES = 12, 30
_SAMPLES, _FLIPS, _EQUAL, _WEIGHTS = 4_000, 2_000, 400, 4_096
_MOST_FLIPPED = 16_000_000
"""Maximum number of flipped sums that are computed at once."""
_MOST = 100_000
"""Maximum number of tasks in a plan."""
_MOST_SEEDS = 100
_RANKS = 1_000
"""Number of tasks, ordered by chance of success, that represent a distribution."""
_SIMULATED = 200
"""Maximum number of tasks for which decisions within a margin, and ties, are simulated task by task."""
_LEAST_SHARES = 6
"""Minimum number of tasks whose shares show how certain a variance is; with fewer, simulated ranges miss too often."""
_TAIL = 0.1
"""Probability that a range misses the truth, on each side."""


@dataclass(frozen=True)
class Variance:
    """The variance of a paired difference.

    Attributes:
        between: ω², the variance of the true difference between tasks.
        within_a: σ²_A, the variance between runs of arm A on one task.
        within_b: σ²_B, the same for arm B.
        separated: Whether the two kinds can be distinguished: each arm has several runs of some task.
        means: Means of both arms, which for shares determine the distribution of differences; None: unknown.
        zeros: Share of tasks without a difference, if these are so many that the comparison assumes bounded values
            instead of sign flips.
        tasks: Number of tasks from which the variance is estimated; None: it is assumed.
    """

    between: float
    within_a: float = 0.0
    within_b: float = 0.0
    separated: bool = True
    means: tuple[float, float] | None = None
    zeros: float | None = None
    tasks: int | None = None

    def of_mean(self, seeds: float) -> float:
        """Return the variance of a task's difference with this number of seeds in each arm."""
        return self.between + (self.within_a + self.within_b) / seeds

    def times(self, factor: float) -> Variance:
        """Return the variance multiplied by a factor."""
        between, within_a, within_b = (factor * part for part in (self.between, self.within_a, self.within_b))
        return replace(self, between=between, within_a=within_a, within_b=within_b)


def variance_of(a: Cells, b: Cells) -> Variance:
    """Estimate the variance components of a paired difference, ω² by the method of moments.

    Without two runs of a task in each arm, all variance counts as variance between tasks, which is conservative.
    """
    difference, means = means_of(b) - means_of(a), (float(means_of(a).mean()), float(means_of(b).mean()))
    total = float(np.var(difference.round(9), ddof=1)) if len(difference) > 1 else 0.0
    within_a, within_b = _pooled(a), _pooled(b)
    known = Variance(total, separated=False, means=means, zeros=zeros(difference), tasks=len(difference))
    if within_a is None or within_b is None:
        return known
    noise = within_a * _inverse_size(a) + within_b * _inverse_size(b)
    return replace(known, between=max(0.0, total - noise), within_a=within_a, within_b=within_b, separated=True)


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
    """The size of a comparison, and the decision that it is for.

    Attributes:
        seeds: Number of runs per task and arm.
        reach: The largest difference that the measure allows; None: unbounded.
        share: Whether a run's value is either 0 or `reach`.
        margin: The largest difference that does not matter.
        equivalence: Whether to test that the arms differ by less than the margin, instead of whether they differ.
    """

    variance: Variance
    tasks: int
    seeds: float
    alpha: float = 0.05
    power: float = 0.8
    reach: float | None = None
    share: bool = False
    margin: float = 0.0
    equivalence: bool = False

    @property
    def rule(self) -> str:
        """Return the decision: with a margin, whether B is at least not inferior, unless equivalence is the
        question."""
        return "equivalence" if self.equivalence else "non-inferiority" if self.margin else "difference"

    @property
    def padded(self) -> bool:
        """Return whether decisions within a margin use `padded_means` instead of sign flips."""
        return self.reach is not None and (self.share or self.variance.zeros is not None)

    @property
    def range(self) -> tuple[Sample, Sample] | None:
        """Return the sample with the smallest and with the largest variance that the tasks of its estimate do not rule
        out: the limits of an 80 % interval, by χ².

        Without several runs of a task, all variance may be between runs. None if the variance is assumed, or from one
        task; shares of fewer than six tasks or of single runs are too imprecise.
        """
        from scipy.special import chdtri

        known, freedom = self.variance, (self.variance.tasks or 0) - 1
        if freedom < 1 or (self.share and (freedom < _LEAST_SHARES - 1 or not known.separated)):
            return None
        small, large = (known.times(freedom / float(chdtri(freedom, tail))) for tail in (_TAIL, 1 - _TAIL))
        if not known.separated:
            small = replace(small, between=0.0, within_a=small.between / 2, within_b=small.between / 2)
        return replace(self, variance=small), replace(self, variance=large)

    def certainty(self, unit: str, difference: float | None = None) -> str:
        """Return, as a sentence, how certain the detectable amount is, and the power for a difference."""
        if not (tasks := self.variance.tasks):
            return ""
        basis = f"The variance is estimated from {counted(tasks, 'task')}"
        if self.range is None:
            single = "" if self.variance.separated else " with single runs"
            return f"{basis}{single}, too few to tell how certain this is."
        low, high = (estimate.detectable for estimate in self.range)
        amounts = f"{plain(low or 0, 3)} to {plain(high, 3)} {unit}" if high else f"{plain(low or 0, 3)} {unit} or more"
        parts = [f"they detect {self.goal}{amounts}"] if low else []
        if difference is not None:
            chances = sorted(estimate.chance(difference) for estimate in self.range)
            parts.append(f"the power for {plain(difference)} is {chances[0]:.0%} to {chances[1]:.0%}")
        return f"{basis}: with 80 % certainty, {', and '.join(parts)}." if parts else f"{basis}."

    @property
    def least(self) -> int:
        """Return the smallest number of tasks at which the question can be decided."""
        if not (self.padded and self.margin and self.reach):
            return least_tasks(self.alpha * (1 + self.equivalence))
        margin = min(self.margin / self.reach, 1 - 1e-9)
        if not self.equivalence:
            return _least_padded((1 - margin) / 2, self.alpha / 2)
        return min(_least_padded(1 - margin, self.alpha), _least_padded((1 + margin) / 2, self.alpha / 2))

    @property
    def goal(self) -> str:
        """Return the effect that the design detects, in words that precede an amount."""
        return "" if self.rule == "difference" else f"{self.rule} within "

    @property
    def nothing(self) -> str:
        """Return, in words, that a design detects nothing."""
        return "no difference" if self.rule == "difference" else f"{self.rule} within no margin"

    def chance(self, difference: float) -> float:
        """Return the probability that a true difference is detected, or that equal arms are shown to be equivalent, or
        not inferior, within it."""
        if self.tasks < self.least:
            return 0.0
        if self.rule != "difference":
            return float(np.mean(_margins(self) <= difference + 1e-9 * (self.reach or 1.0)))
        return _chance(self, abs(difference))

    @property
    def detectable(self) -> float | None:
        """Return the smallest difference (or margin) that is detected with the desired power; None if no possible one
        is."""
        spread = math.sqrt(self.variance.of_mean(self.seeds))
        high = self.reach or 8 * spread
        if not spread or self.tasks < self.least or self.chance(high) < self.power:
            return None
        if self.rule != "difference":
            return float(np.quantile(_margins(self), self.power, method="higher"))
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
    smallest = low + bisect_left(range(low, most + 1), True, key=suffices)
    return smallest if smallest <= most else None


def _least_padded(least: float, level: float) -> int:
    """Return the smallest number of tasks for which `padded_means` reject a mean, if the most favorable tasks do."""
    return math.ceil(math.log(level) / math.log(least) - 1e-9)


@lru_cache(maxsize=10_000)
def _chance(sample: Sample, difference: float) -> float:
    tasks, spread = sample.tasks, math.sqrt(sample.variance.of_mean(sample.seeds))
    if not spread:
        return float(difference > 0)
    if sample.variance.zeros and not sample.share:
        return _with_zeros(sample, difference, 1 - sample.variance.zeros)
    if not sample.share and tasks <= _FEW:
        effect, limits = difference / spread, _normal_limits(tasks, sample.alpha)[0]
        return float(np.mean(limits > -effect) + np.mean(limits > effect))
    if sample.share:
        points, weights = _differences(sample, difference)
        if tasks <= _FEW_SHARES:
            return _by_flips(_drawn(points, weights, tasks), sample.alpha)
        if sample.variance.means:
            spread = max(math.sqrt(weights @ points**2 - (weights @ points) ** 2), 1e-9) * (sample.reach or 1.0)
    return _by_student(difference / spread * math.sqrt(tasks), tasks - 1, sample.alpha)


def _with_zeros(sample: Sample, difference: float, share: float) -> float:
    """Return the power if only a share of the tasks differs; only these tasks count in the test."""
    from scipy.special import bdtr

    known, least = sample.variance, least_tasks(sample.alpha)
    mean = (known.means[1] - known.means[0]) / share if known.means else 0.0
    # The mean, too, makes tasks differ from zero.
    within = 1 / share - (1 - share) * mean**2 / known.of_mean(sample.seeds)
    variance = replace(known.times(max(within, _TAIL)), zeros=None)
    if sample.tasks > _SIMULATED:
        counts, weights = [max(round(share * sample.tasks), least)], [1.0]
    else:
        counts = list(range(least, sample.tasks + 1))
        weights = list(np.diff(bdtr([least - 1, *counts], sample.tasks, share)))
    each = [_chance(replace(sample, tasks=count, variance=variance), difference / share) for count in counts]
    return float(np.dot(weights, each))


def _by_flips(values: Array, alpha: float) -> float:
    """Return the share of samples, in rows, that the test rejects."""
    flips = _some_subsets(values.shape[1], max(_FLIPS, int(100 / alpha))).T
    most, rejected = alpha / 2 * (flips.shape[1] + 1) - 1, 0
    for part in np.array_split(values, math.ceil(values.shape[0] * flips.shape[1] / _MOST_FLIPPED)):
        flipped = part @ flips
        rejected += sum(int(np.sum(np.sum(side <= 1e-6, axis=1) <= most)) for side in (flipped, -flipped))
    return rejected / len(values)


def _margins(sample: Sample) -> Array:
    """Return, for samples of equal arms, the smallest margin within which they are shown to be equivalent, or B not to
    be inferior."""
    few = min(sample.tasks, _SIMULATED)
    return _margins_of(replace(sample, tasks=few)) * math.sqrt(few / sample.tasks)


@lru_cache(maxsize=100)
def _margins_of(sample: Sample) -> Array:
    level, spread = sample.alpha * (1 + sample.equivalence), math.sqrt(sample.variance.of_mean(sample.seeds))
    if sample.padded:
        reach, generator = sample.reach or 1.0, np.random.default_rng(sample.tasks)
        if sample.share:
            drawn = _drawn(*_differences(sample, 0.0), sample.tasks)[:_EQUAL].astype(float)
        else:
            differing = generator.random((_EQUAL, sample.tasks)) >= (share := sample.variance.zeros or 0.0)
            drawn = generator.normal(scale=spread / reach, size=differing.shape) * differing
            drawn = (drawn / math.sqrt(max(1 - share, 1e-9))).clip(-1, 1)
        rows, places = np.unique(np.sort(drawn, axis=1), axis=0, return_inverse=True)
        weights = max(_WEIGHTS, int(40 / level))
        split = np.array_split(rows, len(rows) // 50 + 1)
        parts = [bounded_limits(part.T, (-1.0, 1.0), level, weights) for part in split]
        low, high = np.concatenate(parts, axis=1)[:, places.ravel()] * reach
    else:
        low, high = spread * _normal_limits(sample.tasks, level)
    return np.asarray(np.maximum(-low, high if sample.equivalence else 0))


@lru_cache(maxsize=8)
def _some_subsets(tasks: int, enough: int) -> Array:
    flips: Array = np.asarray(subsets(tasks), dtype=np.float32)
    return flips[np.random.default_rng(tasks).permutation(len(flips))[:enough]] if len(flips) > 2 * enough else flips


def _by_student(shift: float, freedom: int, alpha: float) -> float:
    from scipy.special import nctdtr

    bound = student(1 - alpha / 2, freedom)  # far above it, scipy returns NaN
    return 1.0 if shift > bound + 6 else float(1 - nctdtr(freedom, shift, bound) + nctdtr(freedom, shift, -bound))


@lru_cache(maxsize=100)
def _normal_limits(tasks: int, alpha: float) -> Array:
    """Return the lower and upper interval limits of standard normal samples: a shifted sample is rejected if its lower
    limit is above 0."""
    flips = subsets(tasks)
    size = min(_SAMPLES, _MOST_FLIPPED // len(flips))
    samples = np.random.default_rng(tasks).normal(size=(size, tasks)).astype(np.float32)
    means = samples @ (flips / flips.sum(axis=1, keepdims=True)).astype(np.float32).T
    place = int(alpha / 2 * (len(flips) + 1) + 1e-9) - 1
    return np.asarray(np.partition(means, (place, -1 - place), axis=1)[:, (place, -1 - place)].T, dtype=float)


def _drawn(points: Array, weights: Array, tasks: int) -> Array:
    drawn = np.random.default_rng(tasks).random((_SAMPLES, tasks), dtype=np.float32)
    return np.asarray(points[np.searchsorted(np.cumsum(weights)[:-1], drawn)], dtype=np.float32)


@lru_cache(maxsize=500)
def _differences(sample: Sample, difference: float) -> tuple[Array, Array]:
    """Return the possible differences of two shares on one task, as fractions, and their probabilities, for a mean
    difference.

    Chances of success vary over tasks by beta distributions. On part of the tasks, both arms have the same rank, and on
    the others, they are independent. Means, variances and correlation are those of the runs. Arm A keeps its mean,
    unless the difference would be impossible. Without known means, the means of the arms are equally far from 50 %.
    """
    from scipy.special import betaincinv
    from scipy.stats import binom

    scale, parts = sample.reach or 1.0, sample.variance
    difference /= scale
    before = np.array(parts.means) / scale if parts.means else np.array([0.5 - difference / 2, 0.5 + difference / 2])
    noise = np.array([parts.within_a, parts.within_b]) / scale**2
    alike = (1 - noise / (before * (1 - before)).clip(1e-9)).clip(0.001, 0.999)
    variances = alike * before * (1 - before)
    product, covariance = math.sqrt(variances.prod()), (variances.sum() - parts.between / scale**2) / 2
    rises = not difference or before[1] > before[0] or (before[1] == before[0] and before[0] <= 0.5)
    sign = 1 if rises else -1
    first = before[0].clip(0, 1 - difference) if rises else before[0].clip(difference, 1)
    means = np.array([first, first + sign * difference])
    ranks, size = (np.arange(_RANKS)[:, None] + 0.5) / _RANKS, 1 / alike - 1
    fixed = (means <= 0) | (means >= 1)
    shape = np.where(fixed, 0.5, means)
    a, b = np.where(fixed, means, betaincinv(shape * size, (1 - shape) * size, ranks)).T.clip(1e-9, 1 - 1e-9)
    b = b if covariance >= 0 else b[::-1]
    goal = covariance / max(product, 1e-6) * math.sqrt((alike * means * (1 - means)).prod())
    same = min(max(goal / (np.mean(a * b) - a.mean() * b.mean() or 1.0), 0.0), 1.0)
    points, weights, fewer = [], [], int(sample.seeds)
    more = (1 / fewer - 1 / sample.seeds) * fewer * (fewer + 1)  # the part of tasks with one seed more
    for runs, part in ((fewer, 1 - more), (fewer + 1, more)):
        ones = np.arange(runs + 1)
        p, q = (binom.pmf(ones, runs, chance[:, None]) for chance in (a, b))
        both = same * p.T @ q / _RANKS + (1 - same) * np.outer(p.mean(axis=0), q.mean(axis=0))
        points += [sign * offset / runs for offset in range(-runs, runs + 1)]
        weights += [part * np.trace(both, offset) for offset in range(-runs, runs + 1)]
    return np.array(points), np.array(weights) / sum(weights)
