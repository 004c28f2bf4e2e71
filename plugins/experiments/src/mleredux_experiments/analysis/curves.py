"""Results over time and cost, and time to the first medal."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mleredux_experiments.inference.errors import Array, bounded_limits
from mleredux_experiments.results.table import Row, Version

_POINTS = 60


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
    known = _with_versions(rows)
    if not any(row.versions for row in known):
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
    low, high = bounded_limits(table, (0.0, 100.0))
    mean = table.mean(axis=0)
    area = float(np.trapezoid(mean, x) / end) if end else 0.0
    xs, ys, lows, highs = (tuple(float(value) for value in values) for values in (x, mean, low, high))
    return Curve(xs, ys, lows, highs, area)


def time_to_medal(rows: Sequence[Row]) -> Survival | None:
    """Estimate the time to the first version that earns a medal; None if no run has versions."""
    known = _with_versions(rows)
    if not any(row.versions for row in known):
        return None
    from scipy import stats

    first = [_first_medal(row) for row in known]
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
    """Return the runs with known submission times."""
    return [row for row in rows if row.counts and row.hours is not None and (row.versions or not row.valid)]


def _first_medal(row: Row) -> float | None:
    return next((v.seconds / 3600 for v in row.versions if v.valid and row.medal_of(v.score) is not None), None)


def medals_per_dollar(rows: Sequence[Row]) -> tuple[float, float | None] | None:
    """Return medals per dollar as a ratio of sums over runs with known cost, and its standard error by jackknife over
    tasks."""
    by_task: dict[str, list[float]] = {}
    for row in rows:
        if row.counts and row.cost_usd is not None:
            sums = by_task.setdefault(row.task, [0.0, 0.0])
            sums[0] += row.medal is not None
            sums[1] += row.cost_usd
    table = np.array(list(by_task.values())).reshape(-1, 2)
    medals, dollars = table.sum(axis=0)
    if not dollars:
        return None
    count = len(table)
    without = dollars - table[:, 1]
    if count < 2 or not without.all():
        return float(medals / dollars), None
    ratios = (medals - table[:, 0]) / without
    return float(medals / dollars), float(np.sqrt((count - 1) / count * np.sum((ratios - ratios.mean()) ** 2)))
