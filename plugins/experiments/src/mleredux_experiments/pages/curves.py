"""Charts of the scores of several runs over time, with mean and spread of each arm; the site's script draws them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mleredux_experiments.results.measures import time_unit
from mleredux_experiments.results.table import Row, grouped

_MOST_TASKS = 6
_MOST_LINES = 60
"""Maximum number of single runs in a chart; means and spreads include all runs."""
_COLOURS = 8
_POINTS = 200


class ScoreChart(NamedTuple):
    """A chart of one task: the data that the site's script draws, and the number of runs that have a line."""

    task: str
    data: dict[str, Any]
    runs: int
    drawn: int


def score_charts(arms: Mapping[str, Sequence[Row]]) -> Iterator[ScoreChart]:
    """Yield a chart for each of the first tasks with a run that has several scored versions."""
    curves = [(row.task, arm, points) for arm, rows in arms.items() for row in rows if (points := _points(row))]
    tasks = sorted({task for task, _, points in curves if len(points) > 1})
    for task in tasks[:_MOST_TASKS]:
        yield _chart(task, grouped((arm, points) for own, arm, points in curves if own == task))


def _points(row: Row) -> list[tuple[float, float]]:
    """Return hours and scores of the valid versions of a run that counts."""
    if not row.counts:
        return []
    known = ((version.seconds / 3600, version.score) for version in row.versions if version.valid)
    return [(hours, score) for hours, score in known if score is not None and math.isfinite(score)]


def _chart(task: str, curves: Mapping[str, list[list[tuple[float, float]]]]) -> ScoreChart:
    times = sorted({hours for runs_of_arm in curves.values() for points in runs_of_arm for hours, _ in points})
    unit, scale = time_unit(times[-1])
    x = np.array(times if len(times) <= _POINTS else np.linspace(times[0], times[-1], _POINTS))
    series, data, bands = list[dict[str, Any]](), [(x * scale).tolist()], list[dict[str, Any]]()
    share = max(1, _MOST_LINES // len(curves))
    for number, (arm, runs_of_arm) in enumerate(curves.items()):
        colour, common = f"arm-{number % _COLOURS}", {"stepped": True, "points": False}
        table = np.array([_held(points, x) for points in runs_of_arm])
        for line in table[:share]:
            series.append({"label": arm, "colour": colour, "class": "single", "width": 1, "alpha": 0.35, **common})
            data.append(_numbers(np.where(np.diff(line, prepend=math.nan) == 0, math.nan, line), line[-1]))
        mean = table.mean(axis=0)  # NaN until every run has a score
        series.append({"label": f"{arm}, mean of {len(runs_of_arm)}", "colour": colour, "width": 3, **common})
        data.append(_numbers(mean))
        if len(runs_of_arm) > 1:
            spread = table.std(axis=0, ddof=1)
            bands.append({"series": [len(data), len(data) + 1], "colour": colour})
            edge = {"label": f"{arm}, ± standard deviation", "colour": colour, "class": "single", "width": 0, **common}
            series += [edge, edge]
            data += [_numbers(mean + spread), _numbers(mean - spread)]
    known = [value for line in data[1:] for value in line if value is not None]
    margin = (max(known) - min(known)) * 0.08 or abs(max(known)) * 0.05 or 1.0
    shown = {"x": f"{unit} of agent run time", "levels": [], "series": series, "data": data, "bands": bands}
    ranges = {"range": [min(known) - margin, max(known) + margin], "x_range": [0.0, data[0][-1]]}
    runs = {arm: len(runs_of_arm) for arm, runs_of_arm in curves.items()}
    drawn = sum(min(share, count) for count in runs.values())
    return ScoreChart(task, {**shown, **ranges}, sum(runs.values()), drawn)


def _held(points: Sequence[tuple[float, float]], x: Any) -> Any:
    """Return the score of the last version at each time; NaN before the first version."""
    times, scores = zip(*points, strict=True)
    places = np.searchsorted(times, x, side="right")
    return np.array([math.nan, *scores])[places]


def _numbers(values: Any, last: float = math.nan) -> list[float | None]:
    """Return values in JSON form, with `last` instead of missing values at the end."""
    values = [*values[:-1], values[-1] if math.isnan(last) else last]
    return [None if math.isnan(value) else round(float(value), 6) for value in values]
