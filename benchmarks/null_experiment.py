"""Run null experiments on real runs: how often does a comparison find a difference between an agent and itself?

Run an experiment with several tasks and seeds, for example `benchmarks/findings.toml`; then
`uv run python benchmarks/null_experiment.py RUNS_DIR [--seeds 2] [--experiments 20000]`. Each null experiment permutes
the recorded runs of an arm within each task, independently across tasks; the first seeds become one arm and the next
seeds another, which are then compared. So each split of the runs is as likely as its mirror image. Wilson's interval
refers to the rate over all splits of these runs; it does not generalize to other runs or tasks. Tasks on which all
seeds of an arm have the same score are left out, because they can't cause a false alarm.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
from mleredux_experiments.inference.resampling import Scale, paired_interval, sign_flip
from mleredux_experiments.results.measures import cells, measure
from mleredux_experiments.results.sources import load
from statsmodels.stats.proportion import proportion_confint

MEASURES = ("any_medal", "percentile", "gap_to_median")
LEAST = 5
"""Minimum number of varying tasks: with fewer, sign flips can't reach 5 %."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--seeds", type=int, default=2, help="of each of both")
    parser.add_argument("--experiments", type=int, default=20_000)
    parser.add_argument("--intervals", type=int, default=1_000, help="of these many, intervals are computed too")
    options = parser.parse_args()
    print("| arm | measure | tasks that vary | runs | false alarms (95 %) | intervals that cover 0 |")
    print("| --- | --- | --- | --- | --- | --- |")
    for (arm, rows), name in product(load(options.runs).arms.items(), MEASURES):
        chosen = measure(name)
        cell_values = cells(rows, chosen).values()
        values = [one for one in cell_values if len(one) >= 2 * options.seeds and len(set(one)) > 1]
        if len(values) < LEAST:
            continue
        generator, alarms, covered = np.random.default_rng(0), 0, 0
        for number in range(options.experiments):
            drawn = [generator.permutation(one)[: 2 * options.seeds] for one in values]
            a, b = [one[: options.seeds] for one in drawn], [one[options.seeds :] for one in drawn]
            difference = np.array([y.mean() - x.mean() for x, y in zip(a, b, strict=True)])
            alarms += sign_flip(difference) <= 0.05
            if number < options.intervals:
                interval = paired_interval(difference, Scale(chosen.reach, chosen.share), 0.05)
                assert interval is not None
                covered += interval.low <= 0 <= interval.high
        low, high = proportion_confint(alarms, options.experiments, method="wilson")
        rate = f"{alarms / options.experiments:.1%} ({low:.1%} to {high:.1%})"
        columns = (
            len(values),
            sum(map(len, values)),
            rate,
            f"{covered / min(options.intervals, options.experiments):.1%}",
        )
        print(f"| {arm} | {name} | {' | '.join(map(str, columns))} |", flush=True)


if __name__ == "__main__":
    main()
