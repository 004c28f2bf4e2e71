"""How well an agent selects its submission: its own validation against the test score, and the value of a better
choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mleredux_experiments.results.table import Row


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
        sign = -1 if row.lower_is_better else 1
        scale = abs(row.gold - row.median) if row.gold is not None and row.median is not None else 0.0
        if row.validation is not None and row.score is not None and row.median is not None and scale:
            own, test = (sign * (value - row.median) / scale for value in (row.validation, row.score))
            points.append(Point(row.task, row.run, own, test))
            gaps.setdefault(row.task, []).append(own - test)
        scores = [sign * version.score for version in row.versions if version.valid and version.score is not None]
        if scores:
            best = max(scores)
            medals.append(row.medal is not None)
            oracle.append(row.medal_of(sign * best) is not None)
            if row.score is not None and scale:
                regrets.setdefault(row.task, []).append((best - sign * row.score) / scale)
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
