"""The leaderboard: each arm's published measures by split, with both kinds of error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mleredux_experiments.results.measures import (
    PUBLISHED,
    Estimate,
    check_measurable,
    deterministic,
    measure,
    summarise,
    universe,
)
from mleredux_experiments.results.table import SPLITS, Results
from mleredux_experiments.results.uniformity import by_settings, check_arms, usual_measure

COLUMNS = ("all", *SPLITS)


@dataclass(frozen=True)
class Standing:
    """One row of a leaderboard.

    Attributes:
        name: The arm.
        runs: Number of runs over all tasks: reports or seeds.
        splits: Estimates by split and measure; splits in which the arm has no runs are omitted.
        covers: The splits of the benchmark in which the arm has runs; empty outside a benchmark.
        complete: Whether the arm has runs in every split.
        deterministic: Whether the scores do not depend on the seed.
        left_out: Number of runs that failed through no fault of the agent, by reason.
    """

    name: str
    runs: int
    splits: dict[str, dict[str, Estimate]]
    covers: tuple[str, ...]
    complete: bool
    deterministic: bool
    left_out: dict[str, int]

    def record(self) -> dict[str, Any]:
        """Return the record that `--json` prints."""
        record = asdict(self)
        for estimate in (estimate for split in record["splits"].values() for estimate in split.values()):
            del estimate["seeds"]
        splits = record.pop("splits")
        del record["covers"]
        return {**record, "splits": {split: splits.get(split) for split in COLUMNS}}


def leaderboard(results: Results, measures: Sequence[str] = PUBLISHED, by: str | None = None) -> list[Standing]:
    """Rank arms by a measure, the best first; arms that lack splits follow the complete ones.

    An agent with several settings has one row per setting, such as `baseline[folds=3]`. The `all` estimate is over the
    splits that the row covers; `complete` states whether these are all splits.
    """
    results = by_settings(results)
    check_arms(results)
    by = by or usual_measure(list(results.arms.values()), averaged=True)
    check_measurable(measure(by), results.rows)
    measures = [name for name in dict.fromkeys((*measures, by)) if measure(name).is_ranked(results.rows)]
    splits = universe(results)
    standings = [_standing(results, arm, splits, measures) for arm in results.arms]

    def rank(standing: Standing) -> tuple[bool, float]:
        estimate = standing.splits.get("all", {}).get(by)
        return not standing.complete, -estimate.mean * (-1 if measure(by).lower else 1) if estimate else float("inf")

    return sorted(standings, key=rank)


def _standing(results: Results, arm: str, splits: dict[str, list[str]], measures: Sequence[str]) -> Standing:
    rows = results.arms[arm]
    own = results.keep(rows)
    tried = {row.task for row in rows if row.counts}
    covers = tuple(split for split in splits if tried & set(splits[split]))
    tasks = {split: splits[split] for split in covers}
    if results.universe:
        everything = [task for split in covers for task in splits[split]] or sorted(tried)
    else:
        everything = results.tasks
    by_split: dict[str, dict[str, Estimate]] = {}
    for split, names in {"all": everything, **tasks}.items():
        estimates = {name: summarise(results, rows, measure(name), names) for name in measures}
        if kept := {name: value for name, value in estimates.items() if value is not None}:
            by_split[split] = kept
    seeds = {row.seed for row in rows if row.counts}
    return Standing(
        name=arm,
        runs=len(seeds),
        splits=by_split,
        covers=covers if results.universe else (),
        complete=not set(everything) - tried if not results.universe else len(covers) == len(splits),
        deterministic=deterministic(rows),
        left_out=own.left_out,
    )
