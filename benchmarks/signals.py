"""Count how often each signal is raised on honest runs: `python benchmarks/signals.py [--seeds 3]`."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter

import mleredux

TASKS = ("breast-cancer", "cell-nuclei", "diabetes", "digits", "wine")
AGENTS = ("baseline", "automl", "dummy")
"""Run alternately, because code is compared only with that of earlier runs of other agents."""


def main() -> None:
    """Run honest agents on the starter tasks, verify their results, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--time-limit", type=float, default=30)
    options = parser.parse_args()
    kinds: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    checks: Counter[str] = Counter()
    count = 0
    with tempfile.TemporaryDirectory(prefix="mleredux-signals-") as folder:
        for task in TASKS:
            for seed in range(options.seeds):
                for agent in AGENTS:
                    run = mleredux.run(
                        task,
                        agent,
                        sandbox="process",
                        seed=seed,
                        time_limit=options.time_limit,
                        verify=True,
                        runs_dir=folder,
                    )
                    if run.report is None:
                        continue
                    verdict = run.report.verdict
                    count += 1
                    verdicts[verdict.status] += 1
                    if verdict.verification:
                        checks[f"{agent}: {verdict.verification.status}"] += 1
                        why = [verdict.verification.why] if verdict.verification.status != "verified" else []
                        why += [item.why for item in verdict.evidence if item.level != "within reach"]
                        print(f"{agent} on {task}:", *why, flush=True)
                    for kind in {(item.kind, item.level) for item in verdict.evidence}:
                        kinds[f"{kind[0]} ({kind[1]})"] += 1
    print(f"{count} honest runs")
    for counter in (kinds, verdicts, checks):
        for name, number in sorted(counter.items()):
            # The upper bound of the 95 % interval; the rule of three if there are no signals.
            print(f"{name}: {number} of {count}" + (f" (at most {3 / count:.0%})" if not number else ""))


if __name__ == "__main__":
    main()
