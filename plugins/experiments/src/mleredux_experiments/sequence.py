"""The sequential stopping rule: a test after each seed that all arms have completed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mleredux_experiments.inference.comparison import compare
from mleredux_experiments.sources import load

if TYPE_CHECKING:
    from mleredux_experiments.execution import Execution


def spent_alpha(alpha: float, look: int) -> float:
    """The level of the k-th look, α · 6/(π²k²): over any number of looks these add up to α at most (union bound)."""
    return alpha * 6 / (math.pi * look) ** 2


def decision(execution: Execution, looked: int) -> tuple[int, str | None]:
    """Test all arms against the first once more seeds are complete than at the last look.

    Args:
        looked: Number of complete seeds at the last look.

    Returns:
        The number of complete seeds, and in a sentence that all comparisons are decided, if they are.
    """
    places = execution.places()
    done = _complete((place.cell.seed, place.state == "ended") for place in places)
    if len(done) <= looked or len(done) < 2:
        return len(done), None
    design, arms = execution.record.plan.experiment, list(execution.record.plan.all_arms())
    results = load(execution.store.path, experiment=execution.record.name)
    results = results.keep(row for row in results.rows if row.seed in done)
    level = spent_alpha(design.alpha, len(done)) / max(len(arms) - 1, 1)
    found = [compare(results, arms[0], arm, design.primary) for arm in arms[1:]]
    if found and all(one.p <= level for one in found):
        told = "; ".join(f"{one.b} {one.difference:+.3g} {one.unit} (p = {one.p:.2g})" for one in found)
        return len(done), f"Decided after {len(done)} seeds at level {level:.2g}: {told}."
    return len(done), None


def _complete(cells: Iterable[tuple[int, bool]]) -> set[int]:
    seeds: dict[int, bool] = {}
    for seed, ended in cells:
        seeds[seed] = seeds.get(seed, True) and ended
    return {seed for seed, ended in seeds.items() if ended}
