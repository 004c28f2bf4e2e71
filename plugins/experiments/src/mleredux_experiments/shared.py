"""Functions of experiments for other programs: the table of runs, its analysis, checks of plans, the stopping rule,
failures.

Services import this module if it is installed (extra `experiments`), as do scripts and notebooks. Runs are passed as
directories, so that it does not matter who stores them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from mleredux.plugin.experiment import Cell, Plan, RunPlan

from mleredux_experiments.analysis.analysis import Analysis, analyse
from mleredux_experiments.execution.estimate import Check, checked
from mleredux_experiments.execution.plan import check_measure
from mleredux_experiments.execution.sequence import check_sequence, decision
from mleredux_experiments.failures.categories import Finding
from mleredux_experiments.inference.comparison import compare
from mleredux_experiments.inference.difference import Comparison
from mleredux_experiments.results.sources import UNREADABLE, load, load_runs, read_run
from mleredux_experiments.results.table import Results, Row
from mleredux_experiments.sdk import analysed

__all__ = [
    "Analysis",
    "Check",
    "Comparison",
    "Finding",
    "Results",
    "Row",
    "analyse",
    "analyse_runs",
    "check_matrix",
    "check_sequence",
    "compare",
    "decide",
    "failures_of",
    "load",
    "load_runs",
]


def analyse_runs(runs: Iterable[Path], plan: Plan | None = None, measure: str | None = None) -> Analysis:
    """Analyze the runs in these directories.

    Args:
        plan: The plan of their experiment, if it has one; its first arm is then the baseline.
        measure: The measure, if it is not the plan's primary measure.

    Raises:
        MlereduxError: There are no runs, or they are not comparable.
    """
    return analysed(load_runs(runs, rollouts=True), plan, measure)


def check_matrix(plan: Plan, cells: Sequence[tuple[Cell, RunPlan]], past: Iterable[Path]) -> Check:
    """Estimate time and cost of a plan's cells from past runs, and the difference that the plan detects.

    Raises:
        MlereduxError: The measure does not exist, or the sequential rule cannot stop the plan.
    """
    check_measure(plan)
    check_sequence(plan, len({cell.task for cell, _ in cells}))
    return checked(plan, cells, load_runs(past))


def decide(plan: Plan, runs: Iterable[Path], seeds: int) -> str | None:
    """Return a sentence about the decision of a plan's sequential test, or None if it has not decided.

    Args:
        runs: The runs of the complete seeds.
        seeds: Number of complete seeds.
    """
    return decision(plan, load_runs(runs), seeds)


def failures_of(run: Path) -> tuple[Finding, ...]:
    """Return the reason why the run in a directory fell short, the primary failure first; empty if it can't be read."""
    try:
        return tuple(finding for finding in read_run(run, rollouts=True).findings or () if not finding.overcome)
    except UNREADABLE:
        return ()
