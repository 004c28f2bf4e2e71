"""Diabetes progression: regression on ten measurements, root mean squared error."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from mleredux.plugin.task import Thresholds

from mleredux_competition_starter.declaration import starter
from mleredux_competition_starter.tables import split_table, write_raw

HERE = Path(__file__).parent
NAMES = {
    "s1": "total_cholesterol",
    "s2": "ldl",
    "s3": "hdl",
    "s4": "cholesterol_ratio",
    "s5": "log_triglycerides",
    "s6": "glucose",
}
"""Names of the serum measurements, from scikit-learn's documentation."""


def fetch(raw: Path) -> None:
    """Write scikit-learn's table in its original units: ten measurements and the progression after a year."""
    from sklearn.datasets import load_diabetes

    data = load_diabetes(scaled=False)
    columns = {NAMES.get(name, name): data.data[:, place] for place, name in enumerate(data.feature_names)}
    write_raw(raw, {**columns, "progression": data.target})


prepare = partial(split_table, salt="diabetes/1", targets=["progression"], sample={"progression": "150"})
"""Holds out 30 % of the patients."""

competition = starter(
    "diabetes",
    HERE,
    title="Progression of diabetes",
    known_answers="sklearn.datasets.load_diabetes",
    fetch=fetch,
    prepare=prepare,
    targets=("progression",),
    grader="rmse",
    direction="minimize",
    thresholds=Thresholds(gold=54.66045, silver=54.96883, bronze=55.77364, median=56.58568),
    md5={
        "sample_submission.csv": "8c98f1977ed2ecf6dc0d0904d02e2922",
        "test.csv": "bf6bf06e6ea4fe3ff533866520c4e52b",
        "train.csv": "3cd374b3696e062cbc842336afeea17a",
        "answers.csv": "743554ffe405ae6c2d0fa0e6ad184e46",
    },
    license=None,
    tags=("regression",),
)
