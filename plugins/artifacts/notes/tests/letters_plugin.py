"""A small task with a grader in the standard library: `letters`, a or b by whether x is above 5."""

from __future__ import annotations

import csv
import random
from pathlib import Path

from mleredux import hookimpl
from mleredux.plugin.grader import Grader, GradingInput
from mleredux.plugin.task import Competition, Metric, Submission, Thresholds

DESCRIPTION = Path(__file__)


def prepare(raw: Path, public: Path, private: Path) -> None:
    draw = random.Random(4)
    rows = [(f"{draw.randrange(10**6):06}", round(draw.uniform(0, 10), 3)) for _ in range(120)]
    named = [(key, x, "b" if x > 5 else "a") for key, x in rows]
    tables = {
        public / "train.csv": [("id", "x", "letter"), *named[:60]],
        public / "test.csv": [("id", "x"), *(row[:2] for row in named[60:])],
        public / "sample_submission.csv": [("id", "letter"), *((row[0], "a") for row in named[60:])],
        private / "answers.csv": [("id", "letter"), *((row[0], row[2]) for row in named[60:])],
    }
    for path, table in tables.items():
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(table)


def score(given: GradingInput) -> float:
    answers, made = (
        dict(list(csv.reader(path.open()))[1:]) for path in (given.private / "answers.csv", given.submission)
    )
    return sum(made[key] == letter for key, letter in answers.items()) / len(answers)


@hookimpl
def mleredux_register_graders() -> list[Grader]:
    return [Grader(id="letters-accuracy", title="Accuracy", direction="maximize", score=score)]


@hookimpl
def mleredux_register_tasks() -> list[Competition]:
    return [
        Competition(
            id="letters",
            title="Letters",
            description=DESCRIPTION,
            fetch=lambda raw: None,
            prepare=prepare,
            submission=Submission(id_columns=("id",), target_columns=("letter",)),
            metric=Metric(grader="letters-accuracy"),
            direction="maximize",
            thresholds=Thresholds(gold=0.9, silver=0.8, bronze=0.7, median=0.6),
        )
    ]
