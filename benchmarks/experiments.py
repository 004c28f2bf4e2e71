"""The quality of the statistics: coverage of intervals, false alarms, and power, over synthetic experiments.

Run `uv run python benchmarks/experiments.py [--experiments 1000]`. Each experiment draws tasks with abilities of two
agents in logits (SD 1.5 over tasks, SD 0.5 of the true difference), then medals of K runs. The truth is the mean over
all tasks that could have been drawn.
"""

from __future__ import annotations

import argparse

import numpy as np
from mleredux_experiments.execution.sequence import spent_alpha
from mleredux_experiments.inference.errors import mean_interval, normal
from mleredux_experiments.inference.resampling import sign_flip, two_level

EFFECT = 0.8
DESIGNS = ((22, 1), (22, 3), (22, 5), (75, 1), (75, 3))


def chances(generator: np.random.Generator, tasks: int, effect: float) -> tuple[np.ndarray, np.ndarray]:
    """The chances of a medal of both agents on each task."""
    ability = generator.normal(-0.5, 1.5, tasks)
    other = ability + effect + generator.normal(0, 0.5, tasks)
    return 1 / (1 + np.exp(-ability)), 1 / (1 + np.exp(-other))


def welch(a: np.ndarray, b: np.ndarray) -> bool:
    """What people do with ± SEM: Welch's t-test over the means of the seeds, which ignores the tasks."""
    from scipy.stats import ttest_ind

    means = a.mean(axis=0), b.mean(axis=0)
    return bool(ttest_ind(*means, equal_var=False).pvalue <= 0.05)


def naive(a: np.ndarray, b: np.ndarray, truth: float) -> bool:
    """Whether mean ± 1.96 SEM over seeds covers the truth."""
    difference = b.mean(axis=0) - a.mean(axis=0)
    half = normal(0.975) * difference.std(ddof=1) / np.sqrt(len(difference))
    return bool(abs(difference.mean() - truth) <= half)


def measure(tasks: int, runs: int, effect: float, experiments: int) -> dict[str, float]:
    """Shares over experiments: coverage of the intervals, and rejections of both tests."""
    generator = np.random.default_rng([tasks, runs, int(10 * effect)])
    all_a, all_b = chances(np.random.default_rng(1), 2_000_000, effect)
    truth, truth_a = float(all_b.mean() - all_a.mean()), float(all_a.mean())
    hits = dict.fromkeys(("difference", "mean", "seeds", "sign flips", "welch"), 0)
    for number in range(experiments):
        a, b = ((generator.random((tasks, runs)) < p[:, None]).astype(float) for p in chances(generator, tasks, effect))
        interval, of_a = two_level(list(a), list(b), seed=number), mean_interval(a.mean(axis=1), (0, 1))
        assert interval is not None and of_a is not None
        hits["difference"] += interval.low <= truth <= interval.high
        hits["mean"] += of_a.low <= truth_a <= of_a.high
        hits["sign flips"] += sign_flip((b - a).mean(axis=1), seed=number) <= 0.05
        if runs > 1:
            hits["welch"] += welch(a, b)
            hits["seeds"] += naive(a, b, truth)
    return {name: count / experiments for name, count in hits.items()}


def sequential(tasks: int, seeds: int, effect: float, experiments: int) -> tuple[float, float]:
    """The sequential rule: how often it decides within so many seeds, and after how many on average (all at most)."""
    generator, decided, used = np.random.default_rng([tasks, seeds, int(10 * effect)]), 0, 0
    for number in range(experiments):
        p = chances(generator, tasks, effect)
        a, b = ((generator.random((tasks, seeds)) < one[:, None]).astype(float) for one in p)
        for look in range(2, seeds + 1):
            if sign_flip((b - a)[:, :look].mean(axis=1), seed=number, draws=10_000) <= spent_alpha(0.05, look):
                decided += 1
                break
        used += look
    return decided / experiments, used / experiments


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiments", type=int, default=1000)
    count = parser.parse_args().experiments
    heads = ("tasks", "runs", "coverage: difference", "mean", "± SEM over seeds")
    heads += ("false alarms", "Welch's", "power", "Welch's")
    print(f"| {' | '.join(heads)} |\n{'| --- ' * len(heads)}|")
    for tasks, runs in DESIGNS:
        null, effect = measure(tasks, runs, 0, count), measure(tasks, runs, EFFECT, count)
        both = [f"{(null[name] + effect[name]) / 2:.1%}" for name in ("difference", "mean", "seeds")]
        tests = [f"{found[name]:.1%}" for found in (null, effect) for name in ("sign flips", "welch")]
        if runs == 1:  # no spread over seeds
            both[2] = tests[1] = tests[3] = "–"
        print(f"| {tasks} | {runs} | {' | '.join([*both, *tests])} |", flush=True)
    print("\n| tasks | at most | sequential: false alarms | power | seeds used |\n| --- | --- | --- | --- | --- |")
    for tasks in (22, 75):
        (alarms, _), (power, used) = (sequential(tasks, 10, effect, count) for effect in (0, EFFECT))
        print(f"| {tasks} | 10 seeds | {alarms:.1%} | {power:.1%} | {used:.1f} |", flush=True)


if __name__ == "__main__":
    main()
