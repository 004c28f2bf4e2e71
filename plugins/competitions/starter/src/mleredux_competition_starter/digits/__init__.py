"""Handwritten digits: ten classes, images of 8 by 8 pixels, accuracy."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from mleredux.plugin.task import Thresholds

from mleredux_competition_starter.declaration import starter
from mleredux_competition_starter.tables import split_table, write_raw

HERE = Path(__file__).parent


def fetch(raw: Path) -> None:
    """Write scikit-learn's table: 64 pixels (0 to 16, row by row) and the digit."""
    from sklearn.datasets import load_digits

    data = load_digits()
    pixels = {f"pixel_{row}_{column}": data.images[:, row, column] for row in range(8) for column in range(8)}
    write_raw(raw, {**pixels, "digit": data.target})


prepare = partial(split_table, salt="digits/1", targets=["digit"], sample={"digit": "0"}, stratify=True)
"""Holds out 30 % of each digit."""

competition = starter(
    "digits",
    HERE,
    title="Handwritten digits",
    known_answers="sklearn.datasets.load_digits",
    fetch=fetch,
    prepare=prepare,
    targets=("digit",),
    grader="accuracy",
    direction="maximize",
    thresholds=Thresholds(gold=0.98516, silver=0.9833, bronze=0.97032, median=0.959185),
    md5={
        "sample_submission.csv": "42805dd28100d9905d7e780993731b2a",
        "test.csv": "c87a4cd3f28d87377f5d99f88cdef656",
        "train.csv": "00c1276edabb2baef6748c15bf44d60b",
        "answers.csv": "699ad923fcd24b3e424bd56f13a45b9d",
    },
    category="Image Classification",
    tags=("multiclass", "images"),
)
