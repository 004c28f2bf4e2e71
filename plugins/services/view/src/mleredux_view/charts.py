"""Data for charts, which `static/view.js` draws with uPlot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mleredux.models import Sample
from mleredux.plugin.artifact import Report, VersionScore
from mleredux_artifact_reports.shared import unit_of

_WORSE = 3
"""Scores are drawn down to this far below the median, in units of the distance between gold and median."""


class Series(NamedTuple):
    """A line: its points by x, and its color as the name of a custom property."""

    label: str
    points: Sequence[tuple[float, float]]
    colour: str = "accent"
    stepped: bool = False
    points_shown: bool = True


def chart(
    series: Iterable[Series],
    x: str,
    levels: Sequence[tuple[str, float]] = (),
    end: float = 0.0,
    within: Sequence[float] = (),
) -> dict[str, Any]:
    """Return a chart for `data-chart`.

    Args:
        series: Lines, which may have different x values.
        x: The label of the x axis.
        levels: Horizontal lines, each with a custom property, which is also its label, and a value.
        end: Minimum end of the x axis.
        within: Values that the y axis includes, if not all; `hidden` counts the others.
    """
    lines = list(series)
    xs = sorted({at for line in lines for at, _ in line.points})
    drawn = [y for line in lines for _, y in line.points]
    values = list(within or drawn)
    near = _near(values, [value for _, value in levels])
    low, high = min([*values, *near], default=0.0), max([*values, *near], default=1.0)
    margin = (high - low) * 0.08 or abs(high) * 0.05 or 1.0
    return {
        "x": x,
        "hidden": len(drawn) - len(values),
        "range": [low - margin, high + margin],
        "x_range": [min([0.0, *xs]), max([*xs, end or 0.0], default=1.0)],
        "levels": [{"name": name, "value": value} for name, value in levels],
        "series": [
            {"label": line.label, "colour": line.colour, "stepped": line.stepped, "points": line.points_shown}
            for line in lines
        ],
        "data": [xs, *([dict(line.points).get(at) for at in xs] for line in lines)],
    }


def _near(values: Sequence[float], levels: Sequence[float]) -> list[float]:
    """Return the levels that can be drawn without flattening the line."""
    if not values:
        return list(levels)
    low, high = min(values), max(values)
    reach = 1.5 * ((high - low) or abs(high) * 0.1 or 1.0)
    return [level for level in levels if low - reach <= level <= high + reach]


def score_chart(scores: Sequence[VersionScore], report: Report, seconds: float = 0.0) -> dict[str, Any] | None:
    """Return a chart of the score over the agent's run time, with lines for the medals; None for fewer than two scores.

    Scores far worse than the median, such as that of the sample submission, would flatten the line of the others.
    """
    points = [(item.seconds, item.score) for item in scores if item.score is not None and math.isfinite(item.score)]
    if len(points) < 2:
        return None
    unit, divisor = unit_of(max(seconds, points[-1][0]))
    named = ("median", "bronze", "silver", "gold")
    levels = [(name, at) for name in named if (at := getattr(report, f"{name}_threshold")) is not None]
    within = []
    if len(levels) == len(named) and (span := levels[-1][1] - levels[0][1]):
        within = [y for _, y in points if (y - levels[0][1]) / span > -_WORSE]
    line = Series(report.metric, [(x / divisor, y) for x, y in points], "accent", stepped=True)
    return chart([line], f"{unit} of agent run time", levels, seconds / divisor, within)


def memory_chart(samples: Sequence[Sample]) -> dict[str, Any] | None:
    """Return a chart of the memory and the CPUs in use over time; None for fewer than three samples."""
    known = [(sample.seconds, sample.memory_mb) for sample in samples if sample.memory_mb is not None]
    if len(known) < 3:
        return None
    unit, divisor = unit_of(known[-1][0])
    every = -(-len(known) // 1000)
    return chart([Series("memory in MB", [(x / divisor, y) for x, y in known[::every]])], f"{unit} of agent run time")
