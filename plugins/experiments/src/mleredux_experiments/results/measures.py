"""Measures of a run, and summaries of an arm over tasks and seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from mleredux.errors import MlereduxError
from mleredux.models.units import seconds as seconds_of

from mleredux_experiments.inference.errors import Array, Interval, clustered_se, mean_interval, means_of, seeds_sem
from mleredux_experiments.results.table import UNTRUSTED, Results, Row, grouped, source


@dataclass(frozen=True)
class Measure:
    """A numerical property of a run.

    Attributes:
        unit: `%`, `points` on a bounded scale, `$`, `h`, or empty.
        value: Returns the value for a run that counts; None if the measure does not apply.
        bounds: The smallest and largest possible value; None: unbounded.
        failure: The value of a run without a valid submission.
        lower: Whether lower values are better.
        averaged: Whether values of different tasks can be averaged.
        technique: Whether the measure applies only to technique tasks.
    """

    name: str
    title: str
    unit: str
    value: Callable[[Row], float | None]
    bounds: tuple[float, float] | None = (0.0, 100.0)
    failure: float | None = 0.0
    lower: bool = False
    averaged: bool = True
    technique: bool = False

    @property
    def share(self) -> bool:
        """Return whether a run has either 0 or 100 %, as for a medal or a threshold."""
        return self.unit == "%" and self.name != "percentile"

    @property
    def reach(self) -> float | None:
        """Return the largest possible difference between two runs; None: unbounded."""
        return self.bounds[1] - self.bounds[0] if self.bounds else None

    @property
    def points(self) -> str:
        """Return the unit of a difference."""
        return "points" if self.unit == "%" else self.unit or "units"

    def of(self, row: Row) -> float | None:
        """Return the value for a run, or `failure` if the agent failed."""
        value = self.value(row)
        return self.failure if value is None and (not row.valid or row.verdict in UNTRUSTED) else value

    def is_ranked(self, rows: Iterable[Row]) -> bool:
        """Return whether no leaderboard is needed, no submission is valid, or one of the valid ones was ranked."""
        name = self.name.partition("@")[0]
        valid = [row for row in rows if row.counts and row.valid] if name in _OF_LEADERBOARDS else []
        if not self.share:
            return not valid or any(MEASURES[name].value(row) is not None for row in valid)
        facts = {fact for row in valid for fact in (row.gold, row.median, row.percentile, row.medal)}
        return not valid or facts != {None}


def _share(name: str, title: str, holds: Callable[[Row], bool]) -> Measure:
    return Measure(name, title, "%", lambda row: 100.0 if holds(row) else 0.0)


def _gap(row: Row, origin: float | None, floor: float) -> float | None:
    """Return the distance of a score from a threshold in units of gold − median, not below `floor`."""
    if row.score is None or origin is None or row.gold is None or row.median is None or row.gold == row.median:
        return None
    return max(row.sign * (row.score - origin) / abs(row.gold - row.median), floor)


MEASURES = {
    measure.name: measure
    for measure in (
        _share("made", "submission made", lambda row: row.submitted),
        _share("valid", "valid submission", lambda row: row.valid),
        _share("above_median", "above median", lambda row: row.above_median),
        _share("bronze", "bronze medal", lambda row: row.medal == "bronze"),
        _share("silver", "silver medal", lambda row: row.medal == "silver"),
        _share("gold", "gold medal", lambda row: row.medal == "gold"),
        _share("any_medal", "any medal", lambda row: row.medal is not None),
        Measure("percentile", "percentile", "%", lambda row: row.percentile),
        Measure("gap_to_median", "gap to the median", "", lambda row: _gap(row, row.median, -1), None, -1.0),
        Measure("gap_to_gold", "gap to gold", "", lambda row: _gap(row, row.gold, -2), None, -2.0),
        Measure("score", "score", "", lambda row: row.score, None, None, averaged=False),
        Measure("reward", "technique reward", "", lambda row: row.score, (0.0, 1.0), technique=True),
        Measure("technique_use", "technique use", "", lambda row: row.technique_use, (0.0, 1.0), None),
        Measure("cost_usd", "cost", "$", lambda row: row.cost_usd, None, None, lower=True),
        Measure("tokens", "tokens", "tokens", lambda row: row.tokens, None, None, lower=True),
        Measure("hours", "time", "h", lambda row: row.hours, None, None, lower=True),
        Measure("working_hours", "working time", "h", lambda row: row.working_hours, None, None, lower=True),
    )
}
"""All measures by name. `NAME@2h` measures what a run that ended after two hours would have submitted."""
RESOURCES = ("cost_usd", "tokens", "hours", "working_hours")
"""Resources that a run uses, which vary even if scores do not."""
PUBLISHED = ("made", "valid", "above_median", "bronze", "silver", "gold", "any_medal")
"""The measures in MLE-bench's tables, in percent of tasks."""
_TIMED = (*PUBLISHED, "gap_to_median", "gap_to_gold", "score", "reward")
_OF_LEADERBOARDS = (*PUBLISHED[2:], "gap_to_median", "gap_to_gold", "percentile")


def time_unit(hours: float) -> tuple[str, float]:
    """Return a suitable unit for a time, and the number of these units per hour."""
    return ("hours", 1.0) if hours >= 1 else ("minutes", 60.0) if hours >= 1 / 30 else ("seconds", 3600.0)


def measure(name: str) -> Measure:
    """Return a measure by its name, which may include a time: `any_medal@2h`.

    Raises:
        MlereduxError: The measure does not exist.
    """
    base, at, time = name.partition("@")
    if base not in MEASURES or (at and base not in _TIMED):
        hint = f"The measures are {', '.join(MEASURES)}; and {', '.join(_TIMED)} after a time, such as any_medal@2h."
        raise MlereduxError(f"There is no measure {name!r}.", hint=hint)
    chosen = MEASURES[base]
    if not at:
        return chosen
    try:
        seconds = seconds_of(time)
    except ValueError:
        raise MlereduxError(f"{time!r} is not a valid time.", hint="Write any_medal@90m or any_medal@2h.") from None

    def then(row: Row) -> float | None:
        known = row.versions or not row.valid or (row.hours is not None and row.hours * 3600 <= seconds)
        return chosen.of(row.at(seconds)) if known else None

    return replace(chosen, name=name, title=f"{chosen.title} after {time}", value=then)


class Immeasurable(MlereduxError):
    """A measure does not apply to these runs."""


def check_measurable(chosen: Measure, rows: Sequence[Row]) -> None:
    """Check that a measure applies to runs, and that raw scores of different metrics are not averaged.

    Raises:
        Immeasurable: The measure needs a leaderboard, which no task has; or it is a raw score, and the tasks have
            several metrics.
    """
    metrics = {row.metric for row in rows}
    if not chosen.is_ranked(rows):
        several = ", and scores of different metrics can't be averaged" * (len(metrics) > 1)
        raise Immeasurable(
            f"These tasks have no leaderboard{several}.",
            hint="Choose a task with --where task=TASK, or another measure with --measure.",
        )
    if not chosen.averaged and len(metrics) > 1 and len({row.task for row in rows}) > 1:
        raise Immeasurable(
            f"Scores of {len(metrics)} different metrics can't be averaged over tasks.",
            hint="Use --measure percentile or any_medal, or choose one task with --where task=TASK.",
        )


def cells(rows: Iterable[Row], chosen: Measure, key: Callable[[Row], str] = lambda row: row.task) -> dict[str, Array]:
    """Return the values of each task's runs that count, in order of seeds, without tasks to which the measure does not
    apply: there, a failure has no value either."""
    own = [(row, chosen.of(row)) for row in rows if row.counts and (not chosen.technique or "@" in row.task)]
    unmeasured = {key(row) for row, value in own if row.valid and row.score is not None and value is None}
    unmeasured -= {key(row) for row, value in own if row.valid and value is not None}
    known = ((key(row), row.seed, value) for row, value in own if value is not None)
    values_of = grouped((task, (seed, value)) for task, seed, value in known if task not in unmeasured)
    return {task: np.array([value for _, value in sorted(values)]) for task, values in sorted(values_of.items())}


def deterministic(rows: Iterable[Row]) -> bool:
    """Return whether the scores of an arm are the same for every seed of each task, and some task has several seeds."""
    scores = grouped((row.task, row.score) for row in rows if row.counts)
    repeated = [values for values in scores.values() if len(values) > 1]
    same = all(len(set(values)) == 1 for values in repeated)
    return same and any(values[0] is not None for values in repeated)


@dataclass(frozen=True)
class Estimate:
    """A mean over tasks, with both kinds of error.

    Attributes:
        mean: Mean over tasks of the mean over runs, in the measure's unit.
        sem: Standard error over seeds (these tasks again); None with one seed.
        low, high: Limits of the interval for tasks like these; None with one task.
        se_tasks: Standard error for tasks like these, clustered by task.
        se_sources: Standard error clustered by data source; None if no source has several tasks.
        tasks: Number of tasks.
        runs: Number of runs.
        missing: Number of missing runs: each task should have as many as the arm has seeds.
        bounds: The mean if all missing runs had the worst, and if all had the best value; None if none are missing.
        seeds: The mean over tasks for each seed, if all tasks have the same seeds.
    """

    mean: float
    sem: float | None
    low: float | None
    high: float | None
    se_tasks: float | None
    se_sources: float | None
    tasks: int
    runs: int
    missing: int = 0
    bounds: tuple[float, float] | None = None
    seeds: tuple[float, ...] = field(default=(), repr=False)

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate in another unit."""
        values = {name: getattr(self, name) for name in ("mean", "sem", "low", "high", "se_tasks", "se_sources")}
        return replace(self, **{name: value * factor for name, value in values.items() if value is not None})


def estimate(values: dict[str, Array], chosen: Measure, alpha: float = 0.05) -> Estimate | None:
    """Estimate the mean over tasks; None if there are no tasks."""
    if not values:
        return None
    samples = list(values.values())
    means = means_of(samples)
    interval: Interval | None = mean_interval(means, chosen.bounds, alpha)
    sources = [source(task) for task in values]
    repeated = len(set(sources)) < len(sources)
    equal = len({len(values) for values in samples}) == 1
    return Estimate(
        mean=float(means.mean()),
        sem=seeds_sem(samples),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        se_tasks=clustered_se(means),
        se_sources=clustered_se(means, sources) if repeated else None,
        tasks=len(samples),
        runs=sum(map(len, samples)),
        seeds=tuple(float(mean) for mean in np.mean(np.stack(samples), axis=0)) if equal else (),
    )


def summarise(
    results: Results, rows: Sequence[Row], chosen: Measure, tasks: Sequence[str] | None = None, alpha: float = 0.05
) -> Estimate | None:
    """Estimate an arm's mean over tasks, with bounds if runs are missing.

    Args:
        tasks: The tasks to average over; None: those of the arm. If the results have a universe, runs that an arm lacks
            count as failures, as in published tables; otherwise the mean is over the tasks that the arm has.
    """
    values = cells(rows, chosen)
    if tasks is None:
        return estimate(values, chosen, alpha)
    kept = {task: values[task] for task in tasks if task in values}
    if chosen.bounds is None or chosen.failure is None:
        return estimate(kept, chosen, alpha)
    if chosen.technique:
        tasks = [task for task in tasks if "@" in task]
    result = estimate(_padded(results, rows, chosen, tasks, kept) if results.universe else kept, chosen, alpha)
    if result is None:
        return None
    missing, bounds = bounds_of(rows, chosen, kept, tasks)
    return replace(result, missing=missing, runs=sum(map(len, kept.values())), bounds=bounds) if missing else result


def bounds_of(
    rows: Iterable[Row], chosen: Measure, values: Mapping[str, Array], tasks: Iterable[str]
) -> tuple[int, tuple[float, float]]:
    """Return the number of missing runs, and the mean over tasks if these all had the worst or the best value.

    Each task should have as many runs as the arm has seeds.
    """
    most, own = len({row.seed for row in rows}), [values.get(task, np.array([])) for task in tasks]
    sums, sizes = np.array([array.sum() for array in own]), np.array([len(array) for array in own])
    gaps = np.maximum(most - sizes, 0)
    low, high = (float(np.mean((sums + gaps * end) / (sizes + gaps))) for end in chosen.bounds or (np.nan, np.nan))
    return int(gaps.sum()), (low, high)


def _padded(
    results: Results, rows: Sequence[Row], chosen: Measure, tasks: Sequence[str], kept: dict[str, Array]
) -> dict[str, Array]:
    """Return the values of all tasks; tasks without runs and, with reports, missing runs count as failures."""
    failure = chosen.failure or 0.0
    if not results.by_report:
        return {task: kept.get(task, np.array([failure])) for task in tasks}
    seeds = sorted({row.seed for row in rows})
    by_run = {(row.task, row.seed): chosen.of(row) for row in rows if row.counts}
    table = {task: [by_run.get((task, seed)) for seed in seeds] for task in tasks}
    return {task: np.array([failure if v is None else v for v in line]) for task, line in table.items()}


def universe(results: Results) -> dict[str, list[str]]:
    """Return the tasks on which arms are measured: by split, and as `all`."""
    if results.universe:
        return {split: list(tasks) for split, tasks in results.universe.items()}
    splits = grouped((results.fact(task).split, task) for task in results.tasks)
    return {split: tasks for split, tasks in splits.items() if split}
