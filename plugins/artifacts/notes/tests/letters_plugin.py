"""Small tasks with a grader in the standard library: a or b by whether x is above 5.

`letters` has plain ids, `letters-shops` ids of two columns, `letters-days` dates, `letters-parquet` tables in Parquet.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

from mleredux import hookimpl
from mleredux.plugin.grader import Grader, GradingInput
from mleredux.plugin.task import Competition, Metric, Submission, Thresholds

DESCRIPTION = Path(__file__)
TASKS: dict[str, tuple[str, ...]] = {
    "letters": ("id",),
    "letters-shops": ("shop", "item"),
    "letters-days": ("day",),
    "letters-parquet": ("id",),
}


def keys_of(task: str, draw: random.Random) -> list[tuple[str, ...]]:
    """Ids of 120 rows."""
    if task == "letters-days":
        return [(str(date(2019, 11, 1) + timedelta(days=number)),) for number in range(120)]
    drawn = [f"{key:06}" for key in draw.sample(range(10**6), 120)]
    return [(f"shop{number % 2}", key) if task == "letters-shops" else (key,) for number, key in enumerate(drawn)]


def preparation(task: str, ids: tuple[str, ...]) -> Callable[[Path, Path, Path], None]:
    def prepare(raw: Path, public: Path, private: Path) -> None:
        draw = random.Random(4)
        named = []
        for key in keys_of(task, draw):
            x = round(draw.uniform(0, 10), 3)
            named.append((*key, x, "b" if x > 5 else "a"))
        kind = "parquet" if task == "letters-parquet" else "csv"
        tables = {
            public / f"train.{kind}": [(*ids, "x", "letter"), *named[:60]],
            public / f"test.{kind}": [(*ids, "x"), *(row[:-1] for row in named[60:])],
            public / "sample_submission.csv": [(*ids, "letter"), *((*row[:-2], "a") for row in named[60:])],
            private / "answers.csv": [(*ids, "letter"), *((*row[:-2], row[-1]) for row in named[60:])],
        }
        for path, (header, *rows) in tables.items():
            if path.suffix == ".parquet":
                import pyarrow
                from pyarrow import parquet

                columns = dict(zip(header, zip(*rows, strict=True), strict=True))
                parquet.write_table(pyarrow.table({name: list(cells) for name, cells in columns.items()}), path)
                continue
            with path.open("w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([header, *rows])

    return prepare


def score(given: GradingInput) -> float:
    answers, made = (
        {tuple(row[:-1]): row[-1] for row in list(csv.reader(path.open()))[1:]}
        for path in (given.private / "answers.csv", given.submission)
    )
    return sum(made[key] == letter for key, letter in answers.items()) / len(answers)


@hookimpl
def mleredux_register_graders() -> list[Grader]:
    return [Grader(id="letters-accuracy", title="Accuracy", direction="maximize", score=score)]


@hookimpl
def mleredux_register_tasks() -> list[Competition]:
    return [
        Competition(
            id=task,
            title="Letters",
            description=DESCRIPTION,
            fetch=lambda raw: None,
            prepare=preparation(task, ids),
            submission=Submission(id_columns=ids, target_columns=("letter",)),
            metric=Metric(grader="letters-accuracy"),
            direction="maximize",
            thresholds=Thresholds(gold=0.9, silver=0.8, bronze=0.7, median=0.6),
        )
        for task, ids in TASKS.items()
    ]
