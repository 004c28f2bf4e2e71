"""Layout of the page's charts, in percent of their width. The template renders them as inline SVG."""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import dataclass

from mleredux.models.formats import duration, number
from mleredux.plugin.artifact import Report, VersionScore

from mleredux_artifact_reports.timeline import Mark

_RUG = 240


@dataclass(frozen=True)
class Scale:
    """A score among the thresholds and entries of a leaderboard; better scores are to the right.

    Attributes:
        weaker: Number of entries left of the chart.
        beyond: `left` or `right` if the score is outside the chart.
    """

    marks: list[Mark]
    rug: list[float]
    weaker: int
    score: Mark
    beyond: str | None


def scale_of(report: Report, leaderboard: list[float]) -> Scale | None:
    """Lay out a score on its scale; return None if there is nothing to compare it with."""
    sign = -1 if report.is_lower_better else 1
    named = {
        "median": report.median_threshold,
        "bronze": report.bronze_threshold,
        "silver": report.silver_threshold,
        "gold": report.gold_threshold,
    }
    known = {name: value for name, value in named.items() if value is not None and math.isfinite(value)}
    entries = sorted(sign * score for score in leaderboard if math.isfinite(score))
    if report.score is None or not math.isfinite(report.score) or not (known or entries):
        return None
    anchors = [sign * value for value in known.values()]
    # the tail of weak entries is long: show the better half, and a range of equal size below it
    high = max([*anchors, *entries[-1:]])
    middle = sign * known["median"] if "median" in known else statistics.median(entries or anchors)
    low = min([*anchors, max(middle - (high - middle), *entries[:1] or [-math.inf])])
    span = (high - low) or abs(high) * 0.1 or 1.0
    place = sign * report.score
    beyond = "left" if place < low - span else "right" if place > high + span else None
    if beyond is None:
        low, high = min(low, place), max(high, place)
    span = (high - low) or span

    def x(value: float) -> float:
        return round(min(100.0, max(0.0, 5 + 90 * (value - low) / span)), 3)

    rug = [value for value in entries if low <= value <= high]
    rug = rug[:: max(1, math.ceil(len(rug) / _RUG))]
    return Scale(
        marks=[Mark(name, name.capitalize(), number(value), x(sign * value)) for name, value in known.items()],
        rug=[x(value) for value in rug],
        weaker=sum(value < low for value in entries),
        score=Mark("score", "This run", number(report.score), x(place)),
        beyond=beyond,
    )


@dataclass(frozen=True)
class Level:
    """A value of the vertical axis, at `y` pixels. `kind` is a CSS class: `tick`, or a medal or the median."""

    kind: str
    value: str
    y: float


class _Vertical:
    """A vertical axis with better values on top, robust against a few bad values.

    Args:
        values: The values to draw, at least one.
        lines: Thresholds by name; those far from all better values are omitted.
    """

    height = 170
    bottom = 152

    def __init__(self, values: list[float], lines: dict[str, float | None], lower_is_better: bool) -> None:
        self._sign = -1 if lower_is_better else 1
        good = [self._sign * value for value in values]
        known = {
            name: self._sign * value for name, value in lines.items() if value is not None and math.isfinite(value)
        }
        high, low = max(good), statistics.median(good)
        if low < known.get("median", -math.inf) < high:
            low = known["median"]
        apart = [abs(value - high) for value in known.values() if value != high]
        span = (high - low) or min(apart, default=abs(high) / 20) or 1.0
        near = {name: value for name, value in known.items() if low - 3 * span <= value <= high + 3 * span}
        low, high = min([low, *near.values()]), max([high, *near.values()])
        low = min([low, *(value for value in good if value >= low - 1.5 * ((high - low) or span))])
        margin = 0.06 * ((high - low) or span)
        self._low, self._high = low - margin, high + margin
        self.levels = [Level("tick", number(value), self.y(value)) for value in self._round()]
        self.levels += [Level(name, number(self._sign * v), self.y(self._sign * v)) for name, v in near.items()]

    def y(self, value: float) -> float:
        """Return the position of a value in pixels; values below the axis are placed at its bottom."""
        share = (self._high - self._sign * value) / (self._high - self._low)
        return round(8 + (self.bottom - 8) * min(1.0, max(0.0, share)), 2)

    def is_below(self, value: float) -> bool:
        """Return whether a value is too bad to be on the axis."""
        return self._sign * value < self._low

    def _round(self) -> list[float]:
        """Return two to six round values."""
        ends = sorted((self._sign * self._low, self._sign * self._high))
        power = 10.0 ** math.floor(math.log10(ends[1] - ends[0]))
        step = next(power * part for part in (0.2, 0.5, 1, 2) if (ends[1] - ends[0]) / (power * part) <= 5)
        digits = max(0, 1 - math.floor(math.log10(step)))
        first = math.ceil(ends[0] / step)
        return [round(i * step, digits) for i in range(first, math.floor(ends[1] / step) + 1)]


@dataclass(frozen=True)
class Point:
    """A measured value: `x` in percent, `y` in pixels. `kind` is a CSS class."""

    x: float
    y: float
    kind: str
    title: str


_POINTS = {
    "own": "the agent's own validation",
    "below": "worse than the range of the axis",
    "buggy": "failed or invalid",
}


@dataclass(frozen=True)
class Progress:
    """Values over steps or time with their vertical axis; `best` contains the segments of the line of best values."""

    points: list[Point]
    best: list[tuple[float, float, float, float]]
    levels: list[Level]
    height: int

    @property
    def legend(self) -> list[tuple[str, str, str]]:
        """Return CSS class, words and value of each drawn element that needs a label."""
        lines = [
            (f"level at-{mark.kind}", mark.kind.capitalize(), mark.value) for mark in self.levels if mark.kind != "tick"
        ]
        kinds = {point.kind for point in self.points}
        return lines[::-1] + [(f"point {kind}", words, "") for kind, words in _POINTS.items() if kind in kinds]


def progress_of(values: list[tuple[int, float | None, bool, str]], lower_is_better: bool) -> Progress | None:
    """Lay out a search; return None with fewer than two measured steps.

    Args:
        values: Step number, validation metric (or None), whether it is buggy, and its title.
    """
    measured = [value for _, value, _, _ in values if value is not None and math.isfinite(value)]
    if len(measured) < 2:
        return None
    axis, sign = _Vertical(measured, {}, lower_is_better), -1 if lower_is_better else 1
    points: list[Point] = []
    kept: list[tuple[float, float]] = []
    best = -math.inf
    for index, (step, value, buggy, title) in enumerate(values):
        x = round(3 + 94 * index / max(1, len(values) - 1), 3)
        if value is None or not math.isfinite(value):
            if buggy:
                points.append(Point(x, axis.height - 8, "buggy", f"Step {step}: buggy. {title}"))
            continue
        kind = "buggy" if buggy else "below" if axis.is_below(value) else "tried"
        points.append(Point(x, axis.y(value), kind, f"Step {step}: {number(value)}. {title}"))
        if not buggy and sign * value > best:
            best = sign * value
            kept.append((x, axis.y(value)))
    return Progress(points, _stairs(kept, 97), axis.levels, axis.height)


def curve_of(
    scores: list[VersionScore], total: float, report: Report, validated: dict[int, float] | None = None
) -> Progress | None:
    """Lay out the score over time, with the score that counted at each time; return None with fewer than two scores.

    Args:
        scores: Graded versions, oldest first.
        total: The agent's run time in seconds.
        report: Provides the thresholds, and whether lower is better.
        validated: The agent's own estimates in the task's metric, by version.
    """
    known = [fact.score for fact in scores if fact.score is not None and math.isfinite(fact.score)]
    if len(known) < 2 or total <= 0:
        return None
    own = {version: value for version, value in (validated or {}).items() if math.isfinite(value)}
    lines = {name: getattr(report, f"{name}_threshold") for name in ("median", "bronze", "silver", "gold")}
    axis = _Vertical([*known, *own.values()], lines, report.is_lower_better)
    points: list[Point] = []
    kept: list[tuple[float, float]] = []
    for fact in scores:
        x = round(min(100.0, 100 * fact.seconds / total), 3)
        if fact.score is None or not math.isfinite(fact.score):
            points.append(Point(x, axis.height - 8, "buggy", f"Version {fact.number}: {fact.message or 'no score'}"))
            continue
        if (estimate := own.get(fact.number)) is not None:
            sentence = f"Version {fact.number}: {number(estimate)} in the agent's own validation"
            points.append(Point(x, axis.y(estimate), "own", sentence))
        y, kind = axis.y(fact.score), "below" if axis.is_below(fact.score) else "tried"
        points.append(Point(x, y, kind, f"Version {fact.number} after {duration(fact.seconds)}: {number(fact.score)}"))
        kept.append((x, y))
    return Progress(points, _stairs(kept, 100), axis.levels, axis.height)


def _stairs(kept: list[tuple[float, float]], end: float) -> list[tuple[float, float, float, float]]:
    """Return the lines of values, each of which holds until the next one; the last one holds until the end."""
    steps = itertools.pairwise(kept)
    lines = [line for (x, y), (to, then) in steps for line in ((x, y, to, y), (to, y, to, then))]
    return lines + [(x, y, end, y) for x, y in kept[-1:]]
