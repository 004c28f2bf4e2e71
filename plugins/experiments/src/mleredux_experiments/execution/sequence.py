"""The sequential stopping rule: a test after each seed that all arms have completed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mleredux_experiments.inference.comparison import compare

if TYPE_CHECKING:
    from mleredux.plugin.experiment import Plan

    from mleredux_experiments.results.table import Results


def spent_alpha(alpha: float, look: int) -> float:
    """The level of the k-th look, α · 6/(π²k²): over any number of looks these add up to α at most (union bound)."""
    return alpha * 6 / (math.pi * look) ** 2


def reading_alpha(plan: Plan, results: Results) -> float:
    """The level at which the results of a plan are read: with the sequential rule, that of the present look.

    So read, p-values and intervals hold however often somebody looks, and whenever the experiment stopped.
    """
    if plan.stop.rule != "sequential":
        return plan.experiment.alpha
    arms = plan.all_arms()
    seeds = [{row.seed for row in results.rows if row.arm == arm and row.counts} for arm in arms]
    return spent_alpha(plan.experiment.alpha, max(min(map(len, seeds), default=1), 1)) / max(len(arms) - 1, 1)


def decision(plan: Plan, results: Results, seeds: int) -> str | None:
    """Test all arms against the first, at the level of the look after so many seeds.

    Args:
        results: The runs of the seeds that are complete.

    Returns:
        In a sentence that all comparisons are decided, if they are.
    """
    design, arms = plan.experiment, list(plan.all_arms())
    level = spent_alpha(design.alpha, seeds) / max(len(arms) - 1, 1)
    equivalence = design.analysis == "equivalence"
    found = [
        compare(results, arms[0], arm, design.primary, margin=design.margin, alpha=level, equivalence=equivalence)
        for arm in arms[1:]
    ]
    if found and all(one.verdict in ("better", "worse", "equivalent") for one in found):
        told = "; ".join(f"{one.b} {one.difference:+.3g} {one.unit}, {one.verdict}" for one in found)
        return f"Decided after {seeds} seeds at level {level:.2g}: {told}."
    return None


def complete(cells: Iterable[tuple[int, bool]]) -> set[int]:
    """The seeds whose cells have all ended.

    Args:
        cells: The seed of each, and whether it has ended.
    """
    seeds: dict[int, bool] = {}
    for seed, ended in cells:
        seeds[seed] = seeds.get(seed, True) and ended
    return {seed for seed, ended in seeds.items() if ended}
