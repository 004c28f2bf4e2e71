"""Grading large submissions: `uv run python benchmarks/grading.py`. Needs the graders' package."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy
import pandas
from _measuring import machine, table
from mleredux.models import Competition, Grader, GradingInput, Metric, Submission
from mleredux.plugins import current

SIZES = (10_000, 100_000, 1_000_000)
METRICS = ("accuracy", "rmse", "roc-auc")
REPEATS = 3


def write(folder: Path, metric: str, rows: int) -> None:
    """Answers, and a submission in another order."""
    random = numpy.random.default_rng(0)
    truth = random.normal(size=rows) if metric == "rmse" else random.integers(0, 2, rows)
    noise = random.normal(size=rows)
    predicted = truth if metric == "accuracy" else truth + noise if metric == "rmse" else 1 / (1 + numpy.exp(-noise))
    ids = numpy.arange(rows)
    pandas.DataFrame({"id": ids, "y": truth}).to_csv(folder / "answers.csv", index=False)
    pandas.DataFrame({"id": ids, "y": predicted}).sample(frac=1, random_state=0).to_csv(
        folder / "submission.csv", index=False
    )


def seconds(grader: Grader, folder: Path) -> float:
    """Median seconds of scoring, reading included."""
    task = Competition(
        id="bench",
        title="Benchmark",
        description=folder / "none.md",
        submission=Submission(id_columns=("id",), target_columns=("y",)),
        metric=Metric(grader=grader),
        direction=grader.direction,
    )
    taken = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        grader.score(GradingInput(folder / "submission.csv", folder, task))
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def main() -> None:
    """Measure and print."""
    rows = [("metric", *(f"{size:,} rows, s" for size in SIZES), "rows/s at the largest", "growth, last tenfold")]
    for metric in METRICS:
        grader = current().grader(metric)
        taken = []
        for size in SIZES:
            with tempfile.TemporaryDirectory() as folder:
                write(Path(folder), metric, size)
                taken.append(seconds(grader, Path(folder)))
        rate, growth = SIZES[-1] / taken[-1], taken[-1] / taken[-2]
        rows.append((metric, *(f"{one:.3f}" for one in taken), f"{rate:,.0f}", f"{growth:.1f}×"))
    print(machine())
    print(f"Medians of {REPEATS} runs; reading both files, matching ids and checks included.\n")
    print(table(*rows))


if __name__ == "__main__":
    main()
