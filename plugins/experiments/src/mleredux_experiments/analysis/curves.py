"""Success over attempts (pass@k, pass^k, the best of k attempts by the agent's own validation), how well an agent
selects its submission, results over time and cost, and time to the first medal."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mleredux_experiments.inference.errors import Array, Interval, bounded_limits
from mleredux_experiments.results.measures import Measure, cells
from mleredux_experiments.results.table import Row, Version, grouped

_POINTS = 60
_BAND_MEANS = 2048
"""Number of means from which the bands of curves are estimated; decisions use more."""


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
    counts = [(len(own), int((own > 0).sum())) for own in values.values()]
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
    table = []
    for task in tasks:
        own = [row for row in rows if row.task == task and row.counts]
        if all(row.validation is None for row in own):
            return None
        ordered = sorted(own, key=lambda row: math.inf if row.validation is None else -row.sign * row.validation)
        success = np.array([(measure.of(row) or 0) > 0 for row in ordered], dtype=float)
        n = len(own)
        chances = [
            sum(math.comb(n - 1 - rank, k - 1) * value for rank, value in enumerate(success)) / math.comb(n, k)
            for k in range(1, most + 1)
        ]
        table.append(chances)
    return np.array(table) if table else None


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
        scale = abs(row.gold - row.median) if row.gold is not None and row.median is not None else 0.0
        if row.validation is not None and row.score is not None and row.median is not None and scale:
            own, test = (row.sign * (value - row.median) / scale for value in (row.validation, row.score))
            points.append(Point(row.task, row.run, own, test))
            gaps.setdefault(row.task, []).append(own - test)
        scores = [row.sign * version.score for version in row.versions if version.valid and version.score is not None]
        if scores:
            best = max(scores)
            medals.append(row.medal is not None)
            oracle.append(row.medal_of(row.sign * best) is not None)
            if row.score is not None and scale:
                regrets.setdefault(row.task, []).append((best - row.sign * row.score) / scale)
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


@dataclass(frozen=True)
class Curve:
    """Share of runs that would have a medal if they ended at x, averaged over tasks, in percent.

    Attributes:
        x: Hours, or dollars.
        low, high: 95 % band for tasks like these, at each x.
        area: Mean of the share over x: the area under the curve divided by the largest x.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    area: float


@dataclass(frozen=True)
class Survival:
    """Kaplan–Meier estimate of the time to the first medal; runs that end without one are censored at their end.

    Attributes:
        hours, share: Share of runs, in percent, that have a medal by each time in hours.
        low, high: 95 % limits (log-log, assuming independent runs).
        median: Hours after which half of the runs have a medal; None if fewer ever do.
        medals, runs: Number of events and number of runs.
    """

    hours: tuple[float, ...]
    share: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    median: float | None
    medals: int
    runs: int


def over_time(rows: Sequence[Row], *, most: float | None = None) -> Curve | None:
    """Return medals over hours; a run's medal at a given time is that of its last valid version by then, not of its
    best.

    Args:
        most: The largest number of hours; None: that of the longest run.

    Returns:
        The curve, or None if no run has versions.
    """
    if not (known := _with_versions(rows)):
        return None
    end = most or max(row.hours or 0 for row in known)
    return _curve(known, end, lambda version: version.seconds / 3600)


def over_cost(rows: Sequence[Row], *, most: float | None = None) -> Curve | None:
    """Return medals over the dollars spent by a run; None if the cost of no version is known."""
    known = [row for row in rows if row.counts and all(version.cost_usd is not None for version in row.versions)]
    costs = [row.cost_usd for row in known if row.cost_usd]
    if not costs or not any(row.versions for row in known):
        return None
    return _curve(known, most or max(costs), lambda version: version.cost_usd or 0.0)


def _curve(rows: Sequence[Row], end: float, place: Callable[[Version], float]) -> Curve:
    x = np.linspace(0, end, _POINTS)
    by_task: dict[str, list[Array]] = {}
    for row in rows:
        medals = np.array([0.0, *(float(row.medal_of(v.score) is not None and v.valid) for v in row.versions)])
        medals[-1] = float(row.medal is not None) if row.versions else 0.0
        index = np.searchsorted([place(version) for version in row.versions], x, side="right")
        by_task.setdefault(row.task, []).append(100 * medals[index])
    table = np.array([np.mean(values, axis=0) for values in by_task.values()])
    low, high = bounded_limits(table, (0.0, 100.0), most=_BAND_MEANS)
    mean = table.mean(axis=0)
    area = float(np.trapezoid(mean, x) / end) if end else 0.0
    xs, ys, lows, highs = (tuple(float(value) for value in values) for values in (x, mean, low, high))
    return Curve(xs, ys, lows, highs, area)


def time_to_medal(rows: Sequence[Row]) -> Survival | None:
    """Estimate the time to the first version that earns a medal; None if no run has versions."""
    if not (known := _with_versions(rows)):
        return None
    from scipy import stats

    first = [next((v.seconds / 3600 for v in row.versions if v.valid and row.medal_of(v.score)), None) for row in known]
    events = [hours for hours in first if hours is not None]
    censored = [row.hours or 0.0 for row, hours in zip(known, first, strict=True) if hours is None]
    function = stats.ecdf(stats.CensoredData(uncensored=events, right=censored)).cdf
    if events:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the limits are undefined if all runs or none have a medal
            limits = function.confidence_interval(0.95, method="log-log")
        low, high = limits.low.probabilities, limits.high.probabilities
    else:
        low = high = np.zeros(len(function.quantiles))
    half = np.flatnonzero(function.probabilities >= 0.5)
    columns = (function.quantiles, 100 * function.probabilities, 100 * np.nan_to_num(low), 100 * np.nan_to_num(high))
    hours, share, below, above = (tuple(float(value) for value in column) for column in columns)
    median = float(function.quantiles[half[0]]) if len(half) else None
    return Survival(hours, share, below, above, median, len(events), len(known))


def _with_versions(rows: Sequence[Row]) -> list[Row]:
    """Return the runs with known submission times; none if no run has versions."""
    known = [row for row in rows if row.counts and row.hours is not None and (row.versions or not row.valid)]
    return known if any(row.versions for row in known) else []


def medals_per_dollar(rows: Sequence[Row]) -> tuple[float, float | None] | None:
    """Return medals per dollar as a ratio of sums over runs with known cost, and its standard error by jackknife over
    tasks."""
    costs = ((row, row.cost_usd) for row in rows if row.counts)
    by_task = grouped((row.task, (float(row.medal is not None), cost)) for row, cost in costs if cost is not None)
    table = np.array([np.sum(own, axis=0) for own in by_task.values()]).reshape(-1, 2)
    medals, dollars = table.sum(axis=0)
    if not dollars:
        return None
    count = len(table)
    without = dollars - table[:, 1]
    if count < 2 or not without.all():
        return float(medals / dollars), None
    ratios = (medals - table[:, 0]) / without
    return float(medals / dollars), float(np.sqrt((count - 1) / count * np.sum((ratios - ratios.mean()) ** 2)))
