"""Simulate comparisons and searches beyond the tables of `coverage.py`: skewed differences, margins, weak effects.

Run `uv run python benchmarks/few_tasks.py [skewed | corrected | margin | bisect | medals]… [--experiments 2000]`.
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Callable

import numpy as np
from coverage import Arms, Draw, Search, percentiles, table, truth_of, verdicts
from mleredux.errors import MlereduxError
from mleredux.plugin.command import current
from mleredux_experiments.inference.resampling import sign_flip
from scipy import stats

COMMITS = 33
NOISE: dict[str, Callable[[np.random.Generator, float], float]] = {
    "normal": lambda generator, loss: generator.normal() - loss,
    "heavy tails": lambda generator, loss: generator.standard_t(3) / 3**0.5 - loss,
    "skewed": lambda generator, loss: generator.lognormal() / 2.16 - loss,
    "rounded": lambda generator, loss: round(generator.normal()) - loss,
    "failures": lambda generator, loss: (generator.normal() if generator.random() > 0.2 else -5.0) - loss,
}
"""Scores of a commit that loses something, with a standard deviation of about one."""
MEDALS = {
    f"{rate:.0%}": lambda generator, loss, rate=rate: float(generator.random() < rate - loss) for rate in (0.9, 0.6)
}
"""Medals of a commit; the key is the share of a good one."""


def skewed(generator: np.random.Generator, tasks: int, seeds: int) -> Arms:
    """Draw runs of two agents whose differences between tasks are exponential, with a mean of zero and an SD of 5."""
    level = generator.uniform(30, 70, tasks)
    other = level + generator.exponential(5, tasks) - 5
    a, b = (values[:, None] + generator.normal(0, 2, (tasks, seeds)) for values in (level, other))
    return list(a), list(b)


def alarms(draw: Draw, tasks: int, experiments: int) -> float:
    """Return how often `compare` tells equally good agents apart, with one seed."""
    outcomes = verdicts(draw, False, tasks, 1, experiments)
    return (outcomes["better"] + outcomes["worse"]) / experiments


def print_skewed(count: int) -> None:
    """Print false alarms if differences are skewed."""
    table(
        ("tasks × 1 seed", "false alarms"),
        [(tasks, f"{alarms(skewed, tasks, count):.1%}") for tasks in (6, 10, 22, 75)],
    )


DIFFERENCES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "exponential": lambda generator, tasks: generator.exponential(5, tasks) - 5,
    "lognormal": lambda generator, tasks: (generator.lognormal(size=tasks) - np.exp(0.5)) * 5 / 2.16,
    "normal": lambda generator, tasks: generator.normal(0, 5, tasks),
    "heavy tails": lambda generator, tasks: generator.standard_t(3, tasks) * 5 / 3**0.5,
}
"""Differences between tasks with a mean of zero and a standard deviation of 5."""


def corrected(differences: np.ndarray) -> tuple[float, float]:
    """Return the p-value of a t test that is corrected for skewness (Hall 1992), and the skewness."""
    tasks, skewness = len(differences), float(stats.skew(differences))
    ratio = differences.mean() / differences.std()
    t = tasks**0.5 * (ratio + skewness * ratio**2 / 3 + skewness**2 * ratio**3 / 27 + skewness / (6 * tasks))
    return float(2 * stats.t.sf(abs(t), tasks - 1)), skewness


def print_corrected(count: int) -> None:
    """Print how often 10 tasks differ by sign flips, and by the larger p-value of sign flips and `corrected`, always or
    only if the skewness is above 1; the true difference is in standard errors."""
    rows = []
    for name, effect in itertools.product(DIFFERENCES, (0, 3, -3)):
        generator, decided = np.random.default_rng([abs(effect), effect < 0, 4]), Counter[str]()
        for _ in range(count):
            differences = DIFFERENCES[name](generator, 10) + generator.normal(0, 8**0.5, 10)
            differences += effect * (33 / 10) ** 0.5
            (other, skewness), p = corrected(differences), sign_flip(differences)
            decided["flips"] += p <= 0.05
            decided["both"] += max(p, other) <= 0.05
            decided["skewed"] += (max(p, other) if abs(skewness) > 1 else p) <= 0.05
        rows.append((name, effect, *(f"{decided[rule] / count:.1%}" for rule in ("flips", "skewed", "both"))))
    table(("differences", "true difference", "sign flips", "both, if the skewness is above 1", "both"), rows)


def print_margin(count: int) -> None:
    """Print how often an agent that is worse by the margin is accepted."""
    draw = percentiles(-5, (0, 0))
    margin, rows = truth_of(draw), []
    for tasks, seeds in ((10, 3), (22, 1), (22, 3)):
        outcomes = verdicts(draw, False, tasks, seeds, count, margin=margin)
        rows.append(
            (tasks, seeds, f"{sum(outcomes[name] for name in ('better', 'equivalent', 'not worse')) / count:.1%}")
        )
    table(("tasks", "seeds", "worse by the margin passes"), rows)


def search(noise: str, effect: float, most: int, number: int, tasks: int = 1) -> str:
    """Return the outcome of a search for a commit that lowers scores: `right`, `wrong`, or `undecided` if it names
    several commits or none; a range that lacks the commit is wrong, too."""
    generator, names = np.random.default_rng([number, 7]), [f"task-{task}" for task in range(tasks)]
    references = [f"repo:x@{commit}" for commit in range(COMMITS)]
    first_bad, drawn = int(generator.integers(1, COMMITS)), dict[int, list[list[float]]]()

    class Drawn(Search):
        def _values(self, number: int, seeds: int) -> dict[str, list[float]]:
            scores = drawn.setdefault(number, [])
            while len(scores) < seeds:
                scores.append([(NOISE | MEDALS)[noise](generator, effect * (number >= first_bad)) for _ in names])
            return {name: [run[task] for run in scores[:seeds]] for task, name in enumerate(names)}

    try:
        last, first = Drawn(references, names, {}, current(), least=min(3, most), most=most).find()
    except MlereduxError:
        return "undecided"
    low, high = references.index(last), references.index(first)
    if not effect or not low < first_bad <= high:
        return "wrong"
    return "right" if high - low == 1 else "undecided"


def print_bisect(count: int) -> None:
    """Print the outcomes of `bisect` for weak effects, for the worst kind of noise."""
    rows = []
    for effect in (0.0, 0.2, 0.5):
        for most in (2, 5, 8):
            outcomes = {
                noise: Counter(search(noise, effect, most, number) for number in range(count)) for noise in NOISE
            }
            noise = max(outcomes, key=lambda name: outcomes[name]["wrong"])
            rows.append((f"{effect} SD", most, noise, f"{outcomes[noise]['wrong'] / count:.1%}"))
    table(("effect", "seeds at most", "worst noise", "wrong"), rows)


def print_medals(count: int) -> None:
    """Print the outcomes of `bisect` for medals, with at most 20 seeds."""
    rows = []
    for rate, tasks, effect in itertools.product(MEDALS, (1, 3, 6), (0.0, 0.2, 0.3, 0.5)):
        outcomes = Counter(search(rate, effect, 20, number, tasks) for number in range(count))
        rows.append((rate, f"{effect:.0%}", tasks, *(f"{outcomes[name] / count:.1%}" for name in ("wrong", "right"))))
    table(("share with a medal", "lost", "tasks", "wrong", "right"), rows)


TABLES = {
    "skewed": print_skewed,
    "corrected": print_corrected,
    "margin": print_margin,
    "bisect": print_bisect,
    "medals": print_medals,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=list(TABLES), metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--experiments", type=int, default=2000)
    options = parser.parse_args()
    for name in options.tables:
        TABLES[name](options.experiments)


if __name__ == "__main__":
    main()
