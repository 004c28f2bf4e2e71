"""Simulate comparisons and searches beyond the tables of `coverage.py`: skewed differences, margins, weak effects.

Run `uv run python benchmarks/few_tasks.py [skewed | margin | bisect]… [--experiments 2000]`.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np
from coverage import Arms, Draw, Search, percentiles, table, truth_of, verdicts
from mleredux.errors import MlereduxError
from mleredux.plugin.command import current

COMMITS = 33
NOISE = {
    "normal": lambda generator: generator.normal(),
    "heavy tails": lambda generator: generator.standard_t(3) / 3**0.5,
    "skewed": lambda generator: generator.lognormal() / 2.16,
    "rounded": lambda generator: round(generator.normal()),
    "failures": lambda generator: generator.normal() if generator.random() > 0.2 else -5.0,
}
"""Scores of a good commit, with a standard deviation of about one."""


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


def search(noise: str, effect: float, most: int, number: int) -> str:
    """Return the outcome of a search for a commit that lowers scores: `right`, `wrong`, or `undecided` if it names
    several commits or none; a range that lacks the commit is wrong, too."""
    generator = np.random.default_rng([number, 7])
    references = [f"repo:x@{commit}" for commit in range(COMMITS)]
    first_bad, drawn = int(generator.integers(1, COMMITS)), dict[int, list[float]]()

    class Drawn(Search):
        def _values(self, number: int, seeds: int) -> dict[str, list[float]]:
            scores = drawn.setdefault(number, [])
            while len(scores) < seeds:
                scores.append(NOISE[noise](generator) - effect * (number >= first_bad))
            return {"task": scores[:seeds]}

    try:
        last, first = Drawn(references, ["task"], {}, current(), least=min(3, most), most=most).find()
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


TABLES = {"skewed": print_skewed, "margin": print_margin, "bisect": print_bisect}


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
