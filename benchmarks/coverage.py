"""Do the intervals, tests and power of comparisons hold with few tasks? Simulated experiments with known truth.

Run `uv run python benchmarks/coverage.py [TABLE…] [--experiments 1000]`. Tables: coverage of intervals, by tasks and
seeds; error rates of `compare`; promised and actual power; promises from small pilots; errors of `bisect`; the
sequential rule. A smaller version of the first table is a test of the statistics.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
from mleredux.plugin.command import current
from mleredux_experiments.analysis.curves import pass_at
from mleredux_experiments.execution.bisection import Bisection
from mleredux_experiments.execution.sequence import spent_alpha
from mleredux_experiments.inference.comparison import compare
from mleredux_experiments.inference.errors import Interval, mean_interval, means_of
from mleredux_experiments.inference.power import Sample, variance_of
from mleredux_experiments.inference.resampling import Scale, paired_interval, sign_flip
from mleredux_experiments.results.table import Results, Row
from scipy.optimize import brentq

TASKS, SEEDS = (2, 3, 5, 10, 22), (1, 3, 5)
RATES = ((0.05, 0.35), (0.2, 0.5), (0.5, 0.8), (0.8, 0.5), (0.95, 0.65))
"""Shares of runs with a medal of two agents."""
EFFECT = 0.8
_MANY = 40_000
"""Number of tasks whose mean serves as the truth."""
Array = np.ndarray
Arms = tuple[list[Array], list[Array]]
Draw = Callable[[np.random.Generator, int, int], Arms]


def chances(generator: np.random.Generator, tasks: int, effect: float) -> tuple[Array, Array]:
    """Return both agents' probabilities of a medal, from logits with an SD of 1.5 over tasks and 0.5 of the
    difference."""
    ability = generator.normal(-0.5, 1.5, tasks)
    other = ability + effect + generator.normal(0, 0.5, tasks)
    return 1 / (1 + np.exp(-ability)), 1 / (1 + np.exp(-other))


@cache
def offset(rate: float, spread: float) -> float:
    """Return the mean logit for which this share of runs succeeds, if logits have this SD over tasks."""
    logits = spread * np.random.default_rng(0).normal(size=_MANY)
    return float(brentq(lambda mean: np.mean(1 / (1 + np.exp(-mean - logits))) - rate, -20, 20))


def medals_at(first: float, second: float, spread: float = 1.5, other: float = 0.5) -> Draw:
    """Return a function that draws runs of two agents, of which these shares have a medal."""

    def draw(generator: np.random.Generator, tasks: int, seeds: int) -> Arms:
        ability = generator.normal(0, spread, tasks)
        logits = offset(first, spread) + ability, generator.normal(0, other, tasks) + ability
        logits = logits[0], logits[1] + offset(second, math.hypot(spread, other))
        a, b = (100.0 * (generator.random((tasks, seeds)) < 1 / (1 + np.exp(-one[:, None]))) for one in logits)
        return list(a), list(b)

    return draw


def power_at(first: float, second: float, tasks: int, seeds: int, experiments: int) -> tuple[float, float]:
    """Return the promised power and the share of simulated experiments in which the test detects the difference."""
    draw, generator = medals_at(first, second), np.random.default_rng([tasks, seeds, 2])
    said = promised(draw, True, tasks, seeds, 100 * abs(second - first))
    means = [[means_of(arm) for arm in draw(generator, tasks, seeds)] for _ in range(experiments)]
    return said, float(np.mean([sign_flip(b - a) <= 0.05 for a, b in means]))


def medals(effect: float, *, deterministic: bool = False) -> Draw:
    """Return a function that draws runs with or without a medal; deterministic agents ignore the seed."""

    def draw(generator: np.random.Generator, tasks: int, seeds: int) -> Arms:
        both = []
        for chance in chances(generator, tasks, effect):
            runs = generator.random((tasks, 1 if deterministic else seeds)) < chance[:, None]
            both.append(list(100.0 * np.repeat(runs, seeds if deterministic else 1, axis=1)))
        return both[0], both[1]

    return draw


def percentiles(effect: float, failures: tuple[float, float] = (0.1, 0.05), same: float = 0.0) -> Draw:
    """Return a function that draws percentiles of runs, some of which fail (0); agents are equal on a share of
    tasks."""

    def draw(generator: np.random.Generator, tasks: int, seeds: int) -> Arms:
        level = generator.normal(50, 25, tasks)
        own = level + effect + generator.normal(0, 10, tasks)
        both = []
        for mean, failing in zip((level, own), failures, strict=True):
            values = np.clip(mean[:, None] + generator.normal(0, 8, (tasks, seeds)), 0, 100)
            both.append(np.where(generator.random((tasks, seeds)) < failing, 0.0, values))
        alike = generator.random(tasks) < same
        both[1][alike] = both[0][alike]
        return list(both[0]), list(both[1])

    return draw


def incomplete(draw: Draw) -> Draw:
    """Return a draw in which a fifth of the runs after the first two of each task are missing."""

    def drawn(generator: np.random.Generator, tasks: int, seeds: int) -> Arms:
        a, b = (
            [one[(np.arange(seeds) < 2) | (generator.random(seeds) > 0.2)] for one in arm]
            for arm in draw(generator, tasks, seeds)
        )
        return a, b

    return drawn


POPULATIONS: dict[str, tuple[Draw, bool]] = {
    "percentile": (percentiles(5), False),
    "percentile, ties": (percentiles(5, same=0.4), False),
    "percentile, missing runs": (incomplete(percentiles(5)), False),
    "medals": (medals(EFFECT), True),
    "medals, no effect": (medals(0), True),
    "medals, deterministic": (medals(EFFECT, deterministic=True), True),
    "medals, missing runs": (incomplete(medals(EFFECT)), True),
    "failures": (lambda *size: tuple(map(_failed, percentiles(0, (0.3, 0.1))(*size))), True),  # type: ignore[dict-item, return-value]
}


def _failed(arm: list[Array]) -> list[Array]:
    return [100.0 * (one == 0) for one in arm]


def difference(a: list[Array], b: list[Array], share: bool) -> Interval | None:
    """Return the interval of `compare` over tasks."""
    return paired_interval(means_of(b) - means_of(a), Scale(100.0, share), 0.05)


def board(_a: list[Array], b: list[Array], _share: bool) -> Interval | None:
    """Return the interval of a leaderboard over tasks."""
    return mean_interval(means_of(b), (0.0, 100.0))


def pass_two(_a: list[Array], b: list[Array], _share: bool) -> Interval | None:
    """Return the interval of pass@2, or of pass@1 for single runs."""
    k = min(2, min(map(len, b)))
    return mean_interval(np.array([100 * pass_at(len(one), int((one > 0).sum()), k) for one in b]), (0.0, 100.0))


INTERVALS = {"difference": difference, "leaderboard": board, "pass@2": pass_two}


@cache
def truth(name: str, what: str, twice: bool) -> float:
    """Return the mean over the whole population of tasks."""
    a, b = POPULATIONS[name][0](np.random.default_rng(1), _MANY, 2 if twice else 1)
    if what == "difference":
        return float(np.mean(means_of(b) - means_of(a)))
    return float(np.mean([one.max() for one in b] if what == "pass@2" else means_of(b)))


def cases() -> list[tuple[str, str]]:
    """Return populations and their intervals."""
    return [(name, what) for name, (_, share) in POPULATIONS.items() for what in INTERVALS if share or what != "pass@2"]


def coverage(name: str, what: str, tasks: int, seeds: int, experiments: int) -> tuple[float, float, float]:
    """Return the share of intervals that cover the truth, their level, and the share of intervals of zero width."""
    generator, trials = np.random.default_rng([tasks, seeds]), []
    target = truth(name, what, what == "pass@2" and seeds > 1)
    draw, share = POPULATIONS[name]
    for _ in range(experiments):
        interval = INTERVALS[what](*draw(generator, tasks, seeds), share)
        assert interval is not None
        hit = interval.low - 1e-9 <= target <= interval.high + 1e-9
        trials.append((hit, interval.level, interval.high - interval.low < 1e-6))
    hits, levels, points = np.array(trials, dtype=float).mean(axis=0)
    return float(hits), float(levels), float(points)


def results_of(arms: Arms, share: bool) -> Results:
    """Return the runs of two arms as input of `compare`."""
    rows = []
    for arm, cells in zip("ab", arms, strict=True):
        for task, values in enumerate(cells):
            for seed, value in enumerate(values):
                medal = {"medal": "gold"} if share and value else {}
                rows.append(
                    Row(f"{arm}{task}-{seed}", arm, arm, f"task{task}", seed, valid=True, percentile=value, **medal)
                )
    return Results(tuple(rows))


def verdicts(draw: Draw, share: bool, tasks: int, seeds: int, experiments: int, margin: float = 0.0) -> Counter[str]:
    """Return the verdicts of `compare` on simulated experiments."""
    generator, counts = np.random.default_rng([tasks, seeds, 1]), Counter[str]()
    for _ in range(experiments):
        results = results_of(draw(generator, tasks, seeds), share)
        counts[compare(results, "a", "b", "any_medal" if share else "percentile", margin=margin).verdict] += 1
    return counts


def promised(draw: Draw, share: bool, tasks: int, seeds: int, effect: float) -> float:
    """Return the promised power for the variances of a population."""
    a, b = draw(np.random.default_rng(2), 10_000, max(seeds, 2))
    return Sample(variance_of(a, b), tasks, seeds, reach=100.0, share=share).chance(effect)


class Search(Bisection):
    """Bisection over drawn scores: 0 on average, and lower from the first bad commit on."""

    first_bad = 0
    effect = 1.0

    def _values(self, number: int, seeds: int) -> dict[str, list[float]]:
        drawn = self.drawn.setdefault(number, [])  # type: ignore[attr-defined]
        while len(drawn) < seeds:
            drawn.append(self.generator.normal() - self.effect * (number >= self.first_bad))  # type: ignore[attr-defined]
        return {"task": drawn[:seeds]}


def bisections(effect: float, most: int, experiments: int) -> Counter[str]:
    """Return the outcomes of searches among 33 commits: `right`, `wrong`, `undecided` or `no difference`."""
    counts = Counter[str]()
    for number in range(experiments):
        generator = np.random.default_rng(number)
        search = Search([f"repo:x@{commit}" for commit in range(33)], ["task"], {}, current(), most=most)
        search.first_bad, search.effect = int(generator.integers(1, 33)), effect
        search.generator, search.drawn = generator, {}  # type: ignore[attr-defined]
        try:
            last, first = search.find()
        except Exception as error:
            assert "do not differ" in str(error)
            counts["no difference"] += 1
            continue
        if search.history.index(first) - search.history.index(last) > 1:
            counts["undecided"] += 1
        else:
            counts["right" if first == f"repo:x@{search.first_bad}" else "wrong"] += 1
    return counts


def sequential(tasks: int, seeds: int, effect: float, experiments: int) -> tuple[float, float]:
    """Return how often the sequential rule decides within a number of seeds, and the average number of seeds needed."""
    generator, decided, used = np.random.default_rng([tasks, seeds, int(10 * effect)]), 0, 0
    for _ in range(experiments):
        p = chances(generator, tasks, effect)
        a, b = ((generator.random((tasks, seeds)) < one[:, None]).astype(float) for one in p)
        for look in range(2, seeds + 1):
            if sign_flip((b - a)[:, :look].mean(axis=1)) <= spent_alpha(0.05, look):
                decided += 1
                break
        used += look
    return decided / experiments, used / experiments


def table(heads: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    """Print a table."""
    print(f"\n| {' | '.join(heads)} |\n{'| --- ' * len(heads)}|")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)


def covered(count: int) -> None:
    """Print the coverage of intervals."""
    rows: list[tuple[object, ...]] = []
    for name, what in cases():
        for seeds in SEEDS:
            by_size = [coverage(name, what, tasks, seeds, count) for tasks in TASKS]
            cells = [f"{hit:.1%}" + (f" of {level:.1%}" if level < 0.949 else "") for hit, level, _ in by_size]
            rows.append((f"{name}: {what}", seeds, *cells, f"{max(points for *_, points in by_size):.1%}"))
    table(("interval", "seeds", *(f"{tasks} tasks" for tasks in TASKS), "without width"), rows)


def erring(count: int) -> None:
    """Print the error rates of `compare`."""
    rows: list[tuple[object, ...]] = []
    fewer = max(count // 2, 40)
    margin = truth_of(percentiles(-5, (0, 0)))  # less than 5, because percentiles are at least 0
    for tasks in TASKS:
        for seeds in (1, 3):
            null = verdicts(percentiles(0, (0.1, 0.1)), False, tasks, seeds, fewer)
            none = verdicts(medals(0), True, tasks, seeds, fewer)
            worse = verdicts(percentiles(-5, (0, 0)), False, tasks, seeds, fewer, margin=margin)
            passed = sum(worse[name] for name in ("better", "equivalent", "not worse"))
            alarms = [(one["better"] + one["worse"]) / fewer for one in (null, none)]
            row = (f"{alarms[0]:.1%}", f"{alarms[1]:.1%}", f"{passed / fewer:.1%}")
            rows.append((tasks, seeds, *row, f"{worse['cannot tell'] / fewer:.0%}"))
    heads = ("tasks", "seeds", "false alarms: percentile", "medals", "worse by the margin passes", "cannot tell")
    table(heads, rows)


def powerful(count: int) -> None:
    """Print promised and actual power."""
    rows: list[tuple[object, ...]] = []
    fewer = max(count // 2, 40)
    for tasks in (3, 5, 6, 8, 10, 22, 75):
        for label, draw, share in (("percentile", percentiles(15, (0, 0)), False), ("medals", medals(2.0), True)):
            said = promised(draw, share, tasks, 3, truth_of(draw))
            counts = verdicts(draw, share, tasks, 3, fewer)
            rows.append((label, tasks, f"{said:.0%}", f"{(counts['better'] + counts['worse']) / fewer:.0%}"))
    table(("measure", "tasks × 3 seeds", "power: predicted", "simulated"), rows)
    rows = []
    for tasks in (2, 5, 10, 22):
        for seeds in SEEDS:
            found_rates = [power_at(*rates, tasks, seeds, 4 * count) for rates in RATES]
            rows.append((tasks, seeds, *(f"{said:.1%}, {hits:.1%}" for said, hits in found_rates)))
    table(("tasks", "seeds", *(f"{a:.0%} → {b:.0%}" for a, b in RATES)), rows)


def pilots(draw: Draw, share: bool, tasks: int, seeds: int, experiments: int) -> tuple[float, Array, float]:
    """Return the power of a plan of 22 tasks and 3 seeds, what pilots of this size promise, and the share of their
    ranges that contain the power; pilots without any variance promise nothing."""
    effect, (a, b) = truth_of(draw), draw(np.random.default_rng(2), 10_000, 3)
    plan = Sample(variance_of(a, b), 22, 3, reach=100.0, share=share)
    generator, actual, said, hits = np.random.default_rng([tasks, seeds, 3]), plan.chance(effect), [], []
    for _ in range(experiments):
        sample = replace(plan, variance=variance_of(*draw(generator, tasks, seeds)))
        if sample.variance.of_mean(3):
            said.append(sample.chance(effect))
            if limits := [one.chance(effect) for one in sample.range or ()]:
                hits.append(min(limits) - 0.005 <= actual <= max(limits) + 0.005)
    return actual, np.array(said), float(np.mean(hits or [math.nan]))


def piloted(count: int) -> None:
    """Print what `power` promises from pilots of few tasks."""
    rows: list[tuple[object, ...]] = []
    for label, draw, share in (("percentile", percentiles(7, (0, 0)), False), ("medals", medals_at(0.3, 0.5), True)):
        for tasks in (2, 3, 4, 6, 8, 12, 22):
            for seeds in (1, 3):
                actual, said, hits = pilots(draw, share, tasks, seeds, count)
                low, middle, high = np.quantile(said, (0.1, 0.5, 0.9))
                holds = "no range" if math.isnan(hits) else f"{hits:.0%}"
                formatted = (f"{actual:.0%}", f"{middle:.0%}", f"{low:.0%} to {high:.0%}", holds)
                rows.append((label, tasks, seeds, *formatted, f"{1 - len(said) / count:.0%}"))
    heads = (
        "measure",
        "pilot's tasks",
        "seeds",
        "power",
        "median promise",
        "10 to 90 % of promises",
        "ranges that hold",
    )
    table((*heads, "no variance"), rows)


def searched(count: int) -> None:
    """Print the results of `bisect`."""
    rows: list[tuple[object, ...]] = []
    fewer = max(count // 2, 40)
    for effect in (1.0, 1.5, 2.0, 3.3):
        for most in (8, 20):
            ends = bisections(effect, most, fewer)
            formatted = (f"{ends[name] / fewer:.1%}" for name in ("right", "wrong", "undecided", "no difference"))
            rows.append((f"{effect} SD", most, *formatted))
    table(("bisect: effect", "seeds at most", "right", "wrong", "undecided", "ends do not differ"), rows)


def stopped(count: int) -> None:
    """Print the results of the sequential rule."""
    rows: list[tuple[object, ...]] = []
    for tasks in (22, 75):
        (alarms, _), (power, used) = (sequential(tasks, 10, effect, max(count // 2, 40)) for effect in (0, EFFECT))
        rows.append((tasks, "10 seeds", f"{alarms:.1%}", f"{power:.1%}", f"{used:.1f}"))
    table(("tasks", "at most", "sequential: false alarms", "power", "seeds used"), rows)


TABLES = {
    "coverage": covered,
    "errors": erring,
    "power": powerful,
    "pilots": piloted,
    "bisect": searched,
    "sequential": stopped,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=list(TABLES), metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--experiments", type=int, default=1000)
    args = parser.parse_args()
    for name in args.tables:
        TABLES[name](args.experiments)


def truth_of(draw: Draw) -> float:
    """Return the true difference of a population."""
    a, b = draw(np.random.default_rng(1), _MANY, 1)
    return math.fabs(float(np.mean(means_of(b) - means_of(a))))


if __name__ == "__main__":
    main()
