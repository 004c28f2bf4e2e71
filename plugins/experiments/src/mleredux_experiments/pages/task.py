"""The panel of a task: its agents, with intervals over their runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from mleredux.plugin.page import Visit
from mleredux.plugin.task import Task

from mleredux_experiments.figures.tables import cell
from mleredux_experiments.inference.errors import Array, mean_interval
from mleredux_experiments.pages.compare import readable
from mleredux_experiments.results.measures import MEASURES, Measure, cells, deterministic
from mleredux_experiments.results.sources import load_stamped, stamps_of
from mleredux_experiments.results.table import Results, Row

_MOST_RUNS = 2_000


class Figure(NamedTuple):
    """A measure of an agent: its mean over runs, with the interval or the reason why there is none."""

    mean: str
    error: str


class Standing(NamedTuple):
    """An agent on the task."""

    arm: str
    agent: str
    runs: int
    figures: list[Figure]
    left_out: str


def agents(visit: Visit, task: Task) -> dict[str, Any] | None:
    """Return the agents with runs on the task, the best first."""
    records = list(readable(visit, visit.rows(_MOST_RUNS, task=[task.id])))
    if not records:
        return None
    results = load_stamped(stamps_of(records))
    measures = [MEASURES[name] for name in ("score", "percentile", "any_medal") if task.kind == "competition"]
    measures = measures or [MEASURES["reward"]]
    sign = -1 if task.direction == "minimize" and measures[0].name == "score" else 1
    values = {arm: _values(rows, measures[0]) for arm, rows in results.arms.items()}
    order = sorted(values, key=lambda arm: (not len(values[arm]), -sign * values[arm].sum() / (len(values[arm]) or 1)))
    standings = [_standing(results, arm, measures) for arm in order]
    return {"standings": standings, "titles": [measure.title for measure in measures], "runs": len(results.rows)}


def _standing(results: Results, arm: str, measures: list[Measure]) -> Standing:
    rows = results.arms[arm]
    left_out = ", ".join(f"{count} {reason}" for reason, count in results.keep(rows).left_out.items())
    figures = [_figure(rows, measure) for measure in measures]
    return Standing(arm, rows[0].agent, sum(row.counts for row in rows), figures, left_out)


def _values(rows: tuple[Row, ...], chosen: Measure) -> Array:
    return next(iter(cells(rows, chosen).values()), np.array([]))


def _figure(rows: tuple[Row, ...], chosen: Measure) -> Figure:
    values = _values(rows, chosen)
    if not len(values):
        return Figure("–", "")
    limits = None if deterministic(rows) else mean_interval(values, chosen.bounds)
    error = f"{cell(limits.low)} to {cell(limits.high)}" if limits else "deterministic"
    return Figure(cell(float(values.mean())), "one run" if len(values) == 1 and not limits else error)
