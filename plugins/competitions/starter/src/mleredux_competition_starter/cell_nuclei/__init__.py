"""The most deviant cell nuclei of a sample: six outputs from twenty measurements, mean columnwise RMSE."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from mleredux.plugin.task import Thresholds

from mleredux_competition_starter.declaration import starter
from mleredux_competition_starter.tables import split_table, write_raw

HERE = Path(__file__).parent
TARGETS = (
    "worst_smoothness",
    "worst_compactness",
    "worst_concavity",
    "worst_concave_points",
    "worst_symmetry",
    "worst_fractal_dimension",
)
SAMPLE = dict(zip(TARGETS, ("0.13", "0.25", "0.27", "0.11", "0.29", "0.08"), strict=True))


def fetch(raw: Path) -> None:
    """Write the means and errors of scikit-learn's breast cancer table, and six of its worst values."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    columns = {name.replace(" ", "_"): data.data[:, place] for place, name in enumerate(data.feature_names)}
    features = {name: values for name, values in columns.items() if not name.startswith("worst")}
    write_raw(raw, {**features, **{name: columns[name] for name in TARGETS}})


prepare = partial(split_table, salt="cell-nuclei/1", targets=TARGETS, sample=SAMPLE)
"""Holds out 30 % of the samples."""

competition = starter(
    "cell-nuclei",
    HERE,
    title="Most deviant cell nuclei",
    known_answers="sklearn.datasets.load_breast_cancer",
    fetch=fetch,
    prepare=prepare,
    targets=TARGETS,
    grader="mcrmse",
    direction="minimize",
    thresholds=Thresholds(gold=0.03205, silver=0.03338, bronze=0.03652, median=0.03762),
    md5={
        "sample_submission.csv": "770ea6f4dae185f15e7dfe6c9730af6a",
        "test.csv": "ba4ee63dd62aafa60e85f4be18c072d3",
        "train.csv": "759b8e3cb277dc943f0d04971bc22eed",
        "answers.csv": "6b2fa61691ff759a5a7ad78b055bb9c0",
    },
    tags=("regression", "multi-output"),
)
