"""Intervals cover as often as they say with few tasks, and `compare` errs no more often than it says."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from mleredux.plugin.experiment import Plan
from mleredux_experiments.analysis.analysis import analyse
from mleredux_experiments.execution.sequence import samples
from mleredux_experiments.inference.errors import means_of
from mleredux_experiments.inference.power import Sample, Variance, variance_of
from mleredux_experiments.inference.resampling import Evidence, Scale, sign_flip, zeros
from mleredux_experiments.results.table import Results, Row

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
    assert found["cannot tell"] == (60 if tasks < 6 else 0)


@pytest.mark.parametrize("rates", [(0.05, 0.35), (0.2, 0.5), (0.5, 0.8), (0.8, 0.5), (0.95, 0.65), (0.8, 0.95)])
@pytest.mark.parametrize("tasks", [2, 5, 8, 10, 22])
def test_the_promised_power_of_medals_is_measured_at_any_rate(
    simulation: ModuleType, rates: tuple[float, float], tasks: int
) -> None:
    for seeds in simulation.SEEDS:
        said, hits = simulation.power_at(*rates, tasks, seeds, 300)
        assert hits == pytest.approx(said, abs=error(said, 300) + 0.02), seeds
        assert (said > 0) == (tasks > 5)


def decided(sample: Sample, differences: np.ndarray) -> bool:
    """Whether the rule of a sample decides, by its definition."""
    evidence, p = Evidence.of(differences, Scale(100.0, sample.share)), sign_flip(differences)
    if sample.rule == "difference":
        return p <= sample.alpha
    if sample.rule == "non-inferiority":
        return evidence.above(-sample.margin) <= sample.alpha / 2 or (p <= sample.alpha and differences.mean() > 0)
    return max(evidence.above(-sample.margin), evidence.below(sample.margin)) <= sample.alpha


@pytest.mark.parametrize("primary", ["any_medal", "percentile"])
@pytest.mark.parametrize("stop", ["fixed", "sequential"])
@pytest.mark.parametrize("question", ["difference", "non-inferiority", "equivalence"])
def test_the_power_of_a_plan_is_that_of_the_rule_that_it_names(
    simulation: ModuleType, question: str, stop: str, primary: str
) -> None:
    tasks, seeds, share, experiments = 14, 4, primary == "any_medal", 150
    margin = 0.0 if question == "difference" else 40.0 if share else 12.0
    analysis = "equivalence" if question == "equivalence" else "paired"
    design = {"name": "x", "primary": primary, "margin": margin, "analysis": analysis, "tasks": ["digits"]}
    arms = {"a": {"agent": "dummy"}, "b": {"agent": "dummy"}}
    plan = Plan.model_validate({"experiment": design, "arms": arms, "stop": {"rule": stop}})
    shift = 0.0 if margin else 30.0 if share else 8.0
    draw = simulation.medals_at(0.3, 0.3 + shift / 100) if share else simulation.percentiles(shift, (0, 0))
    many = draw(np.random.default_rng(1), 10_000, seeds)
    looks = samples(plan, variance_of(*many), tasks, seeds)
    assert {look.rule for look in looks} == {question}
    assert [look.seeds for look in looks] == (
        [2, 3, 4] if stop == "sequential" and question != "non-inferiority" else [4]
    )
    amount = margin or abs(float(np.mean(means_of(many[1]) - means_of(many[0]))))
    said = max(look.chance(amount) for look in looks)
    generator, found = np.random.default_rng(5), []
    for _ in range(experiments):
        a, b = (np.array(arm) for arm in draw(generator, tasks, seeds))
        found.append([decided(look, (b - a)[:, : int(look.seeds)].mean(axis=1)) for look in looks])
    hits = np.array(found)
    assert 0.1 < said < 0.999
    assert max(hits.mean(axis=0)) == pytest.approx(said, abs=error(said, experiments) + 0.05)
    assert said <= hits.any(axis=1).mean() + error(said, experiments) + 0.05


@pytest.mark.parametrize("effect", [1.5, 2.0])
def test_bisection_holds_its_level_for_weak_effects(simulation: ModuleType, effect: float) -> None:
    ends = simulation.bisections(effect, 20, 60)
    assert ends["wrong"] <= 60 * (0.05 + error(0.05, 60)) and ends["right"] >= 30


@pytest.mark.parametrize("margin", [0.0, 5.0])
def test_arms_share_the_level_equally_if_a_plan_has_a_margin(simulation: ModuleType, margin: float) -> None:
    """Holm's steps follow the p-values of differences, so they do not hold the level of decisions within a margin."""
    generator = np.random.default_rng(0)
    level = generator.normal(50, 5, 12)
    arms = {
        name: level + gain + generator.normal(0, 1, 12) for name, gain in (("a", 0), ("b", 20), ("c", 10), ("d", 0))
    }
    rows = [
        Row(f"{name}{task}", name, name, f"task{task}", 0, valid=True, percentile=float(value))
        for name, values in arms.items()
        for task, value in enumerate(values)
    ]
    found = analyse(Results(tuple(rows)), arms=list(arms), chosen="percentile", margin=margin)
    levels = sorted(one.alpha for one in found.comparisons)
    assert levels == pytest.approx([0.05 / 3] * 3 if margin else [0.05 / 3, 0.05 / 2, 0.05])
    for one in found.comparisons:
        assert (one.verdict in ("better", "worse")) == (one.adjusted is not None and one.adjusted <= 0.05)


@pytest.mark.parametrize(
    "chances",
    [{"t0": (0.95, 0.3)}, {f"t{number}": (0.9, 0.4) for number in range(3)}, {"t0": (1.0, 0.4), "t1": (0.9, 0.9)}],
)
def test_bisection_of_medals_holds_its_level(simulation: ModuleType, chances: dict[str, tuple[float, float]]) -> None:
    class Medals(simulation.Search):  # type: ignore[name-defined,misc]
        def _values(self, number: int, seeds: int) -> dict[str, list[float]]:
            drawn = self.drawn.setdefault(number, [])
            while len(drawn) < seeds:
                bad = number >= self.first_bad
                drawn.append({task: float(self.generator.random() < chance[bad]) for task, chance in chances.items()})
            return {task: [one[task] for one in drawn[:seeds]] for task in chances}

    simulation_search, simulation.Search = simulation.Search, Medals
    try:
        ends = simulation.bisections(0.0, 20, 80)
    finally:
        simulation.Search = simulation_search
    assert ends["wrong"] <= 80 * (0.05 + error(0.05, 80)) and ends["right"] >= 40


@pytest.mark.parametrize("margin", [0.0, 22.0])
def test_promised_power_counts_tasks_without_a_difference(margin: float) -> None:
    tasks, generator = 12, np.random.default_rng(0)
    drawn = generator.normal(0 if margin else 8, 5, (1_000, tasks)) * (generator.random((1_000, tasks)) < 0.6)
    drawn = drawn[[zeros(row) is not None for row in drawn]]
    sample = Sample(
        Variance(float(drawn.var()), means=(0.0, float(drawn.mean())), zeros=0.4), tasks, 1, reach=100.0, margin=margin
    )
    hits = float(np.mean([decided(sample, row) for row in drawn]))
    said = sample.chance(margin or float(drawn.mean()))
    assert said == pytest.approx(hits, abs=0.12)
    normal = replace(sample, variance=replace(sample.variance, zeros=None))
    assert normal.chance(margin or float(drawn.mean())) > said


@pytest.mark.parametrize(("tasks", "seeds"), [(3, 3), (5, 3), (8, 1), (12, 3)])
def test_the_range_of_a_promise_from_a_pilot_holds(simulation: ModuleType, tasks: int, seeds: int) -> None:
    *_, hits = simulation.pilots(simulation.percentiles(7, (0, 0)), False, tasks, seeds, 80)
    assert hits >= 0.8 - error(0.8, 80)


@pytest.mark.parametrize("freedom", [12, 21, 99, 10_000])
def test_power_rises_with_the_difference_up_to_certainty(freedom: int) -> None:
    sample = Sample(Variance(100.0), freedom + 1, 1, reach=100.0)
    chances = [sample.chance(difference) for difference in np.linspace(0, 100, 300)]
    assert all(a <= b + 1e-9 for a, b in pairwise(chances)) and chances[-1] == 1.0
