"""Null experiments on real runs: how often does the comparison find a difference between an agent and itself?

Run an experiment with one arm, several tasks and many seeds, for example `benchmarks/null.toml`; then
`uv run python benchmarks/null_experiment.py RUNS_DIR [--seeds 3] [--experiments 1000]`. Each null experiment draws
disjoint seeds of the real runs for two arms that are the same agent, separately for each task, and compares them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from mleredux_experiments.inference.resampling import sign_flip, two_level
from mleredux_experiments.measures import cells, measure
from mleredux_experiments.sources import load

MEASURES = ("any_medal", "percentile", "gap_to_gold")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--seeds", type=int, default=3, help="of each arm")
    parser.add_argument("--experiments", type=int, default=1000)
    asked = parser.parse_args()
    rows = load(asked.runs).rows
    print("| measure | tasks | runs | false alarms | intervals that cover 0 |\n| --- | --- | --- | --- | --- |")
    for name in MEASURES:
        values = list(cells(rows, measure(name)).values())
        generator, alarms, covered = np.random.default_rng(0), 0, 0
        for number in range(asked.experiments):
            drawn = [generator.permutation(one)[: 2 * asked.seeds] for one in values]
            a, b = [one[: asked.seeds] for one in drawn], [one[asked.seeds :] for one in drawn]
            difference = np.array([y.mean() - x.mean() for x, y in zip(a, b, strict=True)])
            interval = two_level(a, b, seed=number)
            assert interval is not None
            alarms += sign_flip(difference, seed=number) <= 0.05
            covered += interval.low <= 0 <= interval.high
        shares = [f"{count / asked.experiments:.1%}" for count in (alarms, covered)]
        print(f"| {name} | {len(values)} | {sum(map(len, values))} | {' | '.join(shares)} |", flush=True)


if __name__ == "__main__":
    main()
