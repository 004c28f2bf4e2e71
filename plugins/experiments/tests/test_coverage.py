"""Intervals cover as often as they say with few tasks, and `compare` errs no more often than it says."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

_EXPERIMENTS = 40
"""For each number of tasks and seeds."""


@pytest.fixture(scope="module")
def simulation() -> ModuleType:
    """The benchmark, of which this is a small version."""
    path = Path(__file__).parents[3] / "benchmarks" / "coverage.py"
    spec = spec_from_file_location("coverage_benchmark", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def error(level: float, experiments: int) -> float:
    """Three standard errors of the share of experiments that an interval of this level covers."""
    return 3 * (level * (1 - level) / experiments) ** 0.5


POPULATIONS = (
    "percentile",
    "percentile, ties",
    "percentile, missing runs",
    "medals",
    "medals, no effect",
    "medals, deterministic",
    "medals, missing runs",
    "failures",
)


@pytest.mark.parametrize("name", POPULATIONS)
def test_intervals_cover_with_few_tasks(simulation: ModuleType, name: str) -> None:
    for what in (what for population, what in simulation.cases() if population == name):
        sizes = [(tasks, seeds) for tasks in simulation.TASKS for seeds in simulation.SEEDS]
        found = {size: simulation.coverage(name, what, *size, _EXPERIMENTS) for size in sizes}
        for size, (covered, level, points) in found.items():
            assert covered >= level - error(level, _EXPERIMENTS) - 0.01, (what, size)
            assert points == 0, (what, size)
        covered, level, _ = (sum(column) / len(sizes) for column in zip(*found.values(), strict=True))
        assert covered >= level - error(level, _EXPERIMENTS * len(sizes)), what


def test_every_population_is_tested(simulation: ModuleType) -> None:
    assert set(POPULATIONS) == set(simulation.POPULATIONS)


@pytest.mark.parametrize("tasks", [2, 3, 5, 6, 10])
def test_an_agent_that_is_worse_by_the_margin_passes_no_more_often_than_the_level(
    simulation: ModuleType, tasks: int
) -> None:
    draw = simulation.percentiles(-5, (0, 0))
    found = simulation.verdicts(draw, False, tasks, 1, 60, margin=5.0)
    passed = sum(found[name] for name in ("better", "equivalent", "not worse"))
    assert passed <= 60 * (0.05 + error(0.05, 60))
    assert (tasks < 6) == (found["cannot tell"] > 0)
    if tasks < 5:
        assert found["cannot tell"] == 60


@pytest.mark.parametrize("effect", [1.5, 2.0])
def test_bisection_holds_its_level_for_weak_effects(simulation: ModuleType, effect: float) -> None:
    ends = simulation.bisections(effect, 20, 60)
    assert ends["wrong"] <= 60 * (0.05 + error(0.05, 60)) and ends["right"] >= 30
