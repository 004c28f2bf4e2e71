"""The sequential stopping rule: a test after each seed that all arms have completed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mleredux.errors import MlereduxError
from mleredux.models.formats import counted, plain

from mleredux_experiments.inference.comparison import compare
from mleredux_experiments.inference.power import Sample, Variance
from mleredux_experiments.results.measures import Immeasurable, measure

_FIRST_LOOK = 2
"""Number of complete seeds at the first test."""

if TYPE_CHECKING:
    from mleredux.plugin.experiment import Plan

    from mleredux_experiments.results.table import Results


def spent_alpha(alpha: float, look: int) -> float:
    """Return the level of the k-th look, α · 6/(π²k²); over any number of looks, the levels sum to at most α (union
    bound)."""
    return alpha * 6 / (math.pi * look) ** 2


def last_alpha(plan: Plan, seeds: int) -> float:
    """Return the level of each comparison with the first arm once this many seeds are complete."""
    alpha = spent_alpha(plan.experiment.alpha, seeds) if plan.stop.rule == "sequential" else plan.experiment.alpha
    return alpha / max(len(plan.all_arms()) - 1, 1)


def samples(plan: Plan, variance: Variance, tasks: int, seeds: int) -> list[Sample]:
    """Return the sample of each look that can decide; with the fixed rule, and for non-inferiority, that is the last
    one."""
    design, what = plan.experiment, measure(plan.experiment.primary)
    scale, equivalence = (what.reach, what.share), design.analysis == "equivalence"
    last = Sample(variance, tasks, seeds, last_alpha(plan, seeds), 0.8, *scale, design.margin, equivalence)
    if plan.stop.rule == "fixed" or last.rule == "non-inferiority":
        return [last]
    looks = range(min(_FIRST_LOOK, seeds), seeds + 1)
    return [replace(last, seeds=look, alpha=last_alpha(plan, look)) for look in looks]


def check_sequence(plan: Plan, tasks: int) -> None:
    """Check that a sequential plan has enough tasks to be able to stop early.

    Raises:
        MlereduxError: The plan has too few tasks.
    """
    first = samples(plan, Variance(0), tasks, _FIRST_LOOK)[0]
    margin = first.margin if first.equivalence else 0  # only a difference or equivalence ends an experiment early
    first = replace(first, alpha=last_alpha(plan, _FIRST_LOOK), margin=margin)
    if plan.stop.rule == "sequential" and tasks < (least := first.least):
        message = f"stop.rule: with {counted(tasks, 'task')}, the sequential rule can never stop this experiment."
        raise MlereduxError(message, hint=f"Plan {counted(least, 'task')} or more, or use the rule `fixed`.")


def reading_alpha(plan: Plan, results: Results) -> float:
    """Return the level for reading the results of a plan: with the sequential rule, the level of the current look.

    At this level, p-values and intervals are valid however often results are inspected, and whenever the experiment
    stopped. The level applies to all arms together.
    """
    if plan.stop.rule != "sequential":
        return plan.experiment.alpha
    arms = plan.all_arms()
    seeds = [{row.seed for row in results.rows if row.arm == arm and row.counts} for arm in arms]
    return spent_alpha(plan.experiment.alpha, max(min(map(len, seeds), default=1), 1))


def as_planned(
    plan: Plan | None, results: Results, *, measure: str | None, alpha: float | None,
    margin: float | None = None, equivalence: bool = False, single: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """Return the arguments of a comparison; those that are not set default to the experiment's plan.

    Args:
        single: Whether a single comparison is made, out of several that share the plan's level.
    """
    if plan is not None:
        design = plan.experiment
        same = measure in (None, design.primary)
        share = max(len(plan.all_arms()) - 1, 1) if single else 1
        measure, alpha = measure or design.primary, alpha or reading_alpha(plan, results) / share
        margin = design.margin if margin is None and same else margin
        equivalence = equivalence or (same and design.analysis == "equivalence")
    return {"chosen": measure, "alpha": alpha or 0.05, "margin": margin or 0.0, "equivalence": equivalence}


def decision(plan: Plan, results: Results, seeds: int) -> str | None:
    """Test all arms against the first, at the level of the look after this many seeds.

    Args:
        results: The runs of the complete seeds.

    Returns:
        A sentence stating that all comparisons are decided; None if they are not, or the measure does not apply.
    """
    design, arms = plan.experiment, list(plan.all_arms())
    level = last_alpha(plan, seeds)
    options: dict[str, Any] = {"alpha": level, "margin": design.margin, "equivalence": design.analysis == "equivalence"}
    try:
        comparisons = [compare(results, arms[0], arm, design.primary, **options) for arm in arms[1:]]
    except Immeasurable:
        return None
    if comparisons and all(comparison.verdict in ("better", "worse", "equivalent") for comparison in comparisons):
        outcomes = "; ".join(
            f"{comparison.b} {plain(comparison.difference, 3, signed=True)} {comparison.unit}, {comparison.verdict}"
            for comparison in comparisons
        )
        return f"Decided after {counted(seeds, 'seed')} at level {plain(level, 2)}: {outcomes}."
    return None


def complete(cells: Iterable[tuple[int, bool]]) -> set[int]:
    """Return the seeds whose cells have all ended.

    Args:
        cells: The seed of each cell, and whether the cell has ended.
    """
    known = tuple(cells)
    return {seed for seed, _ in known} - {seed for seed, ended in known if not ended}
