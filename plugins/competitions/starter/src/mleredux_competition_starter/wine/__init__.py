"""Wine cultivars: three classes, thirteen chemical measurements, log loss."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from mleredux.plugin.task import Thresholds

from mleredux_competition_starter.declaration import starter
from mleredux_competition_starter.tables import one_hot_answers, split_table, write_raw

HERE = Path(__file__).parent
CULTIVARS = ("cultivar_1", "cultivar_2", "cultivar_3")


def fetch(raw: Path) -> None:
    """Write scikit-learn's table: thirteen measurements and the cultivar."""
    from sklearn.datasets import load_wine

    data = load_wine()
    names = [name.replace("/", "_") for name in data.feature_names]
    columns = {name: data.data[:, place] for place, name in enumerate(names)}
    write_raw(raw, {**columns, "cultivar": [CULTIVARS[value] for value in data.target]})


SAMPLE = dict(zip(CULTIVARS, ("0.34", "0.33", "0.33"), strict=True))
prepare = partial(
    split_table, salt="wine/1", targets=["cultivar"], sample=SAMPLE, stratify=True, answers=one_hot_answers(CULTIVARS)
)
"""Holds out 30 % of each cultivar; the answers have a column per cultivar."""

competition = starter(
    "wine",
    HERE,
    title="Wine cultivars",
    known_answers="sklearn.datasets.load_wine",
    fetch=fetch,
    prepare=prepare,
    targets=CULTIVARS,
    grader="log-loss",
    direction="minimize",
    thresholds=Thresholds(gold=0.0139, silver=0.03884, bronze=0.09462, median=0.11739),
    md5={
        "sample_submission.csv": "1ba351d3b40f181534bc9776cc7600a3",
        "test.csv": "37681e8e11bc40c08f9bfb17592bd694",
        "train.csv": "a659ed1fdd9bda8561aa22b976865144",
        "answers.csv": "a2a8f737378887880f03caf948621146",
    },
    tags=("multiclass",),
)
