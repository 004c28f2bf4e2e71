"""The toy task with a declared leak, as a plugin: a column that is the label in the training table, else 0."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from mleredux.models import KnownLeak
from mleredux.plugin import hookimpl
from mleredux.plugin.task import Task
from mleredux_testing.toys import prepare, toy_task

mleredux_contract = 2


def _prepare(raw: Path, public: Path, private: Path) -> None:
    prepare(raw, public, private)
    for name in ("train.csv", "test.csv"):
        head, *rows = list(csv.reader((public / name).open()))
        booked = [row[-1] if name == "train.csv" else "0" for row in rows]
        with (public / name).open("w", newline="") as file:
            csv.writer(file).writerows(
                [[*head, "booked"], *([*row, one] for row, one in zip(rows, booked, strict=True))]
            )


@hookimpl
def mleredux_register_tasks() -> Iterable[Task]:
    """The task `toy-leak`."""
    leak = KnownLeak(columns=("booked",), explanation="Large rectangles are booked after they were measured.")
    return [toy_task.model_copy(update={"id": "toy-leak", "prepare": _prepare, "known_leaks": (leak,), "sets": ()})]
