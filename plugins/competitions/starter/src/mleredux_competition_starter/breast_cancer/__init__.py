"""Wisconsin diagnostic breast cancer: two classes, thirty measurements, area under the ROC curve."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from mleredux.plugin.task import Thresholds

from mleredux_competition_starter.declaration import starter
from mleredux_competition_starter.tables import split_table, write_raw

HERE = Path(__file__).parent


def fetch(raw: Path) -> None:
    """Write scikit-learn's table: thirty measurements and whether the tumor is malignant (1) or benign (0)."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    columns = {name.replace(" ", "_"): data.data[:, place] for place, name in enumerate(data.feature_names)}
    write_raw(raw, {**columns, "malignant": 1 - data.target})


prepare = partial(
    split_table, salt="breast-cancer/1", targets=["malignant"], sample={"malignant": "0.5"}, stratify=True
)
"""Holds out 30 % of each class."""

competition = starter(
    "breast-cancer",
    HERE,
    title="Breast cancer diagnosis",
    known_answers="sklearn.datasets.load_breast_cancer",
    fetch=fetch,
    prepare=prepare,
    targets=("malignant",),
    grader="roc-auc",
    direction="maximize",
    thresholds=Thresholds(gold=0.99635, silver=0.99474, bronze=0.99022, median=0.9884649999999999),
    md5={
        "sample_submission.csv": "77295dadc17f8501848f322bb087c8ee",
        "test.csv": "535f7182b01603688687ee4d623bc078",
        "train.csv": "b9bde9656ecfd4da32b45587821caada",
        "answers.csv": "c30f738da1fbaf4ae15147ae7e6c981b",
    },
    tags=("binary",),
)
