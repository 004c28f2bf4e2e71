"""Cross-validation by how near its estimate comes to the score on the private test.

Naive: KFold with five shuffled folds, whatever the rows have to do with one another. Strong: what fits how the test was
split off: whole groups, the future, or at random. A method that lets rows of one group into both sides, or the future
into the past, is caught by its optimism.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mleredux_techniques.dataset import Dataset
from mleredux_techniques.efficacy.carrying_out import Array
from mleredux_techniques.efficacy.comparison import Choice, judge
from mleredux_techniques.efficacy.folds import CannotSplit, folds
from mleredux_techniques.efficacy.recipe import Rows, matrices
from mleredux_techniques.efficacy.reference import MODELS, loss, predict
from mleredux_techniques.efficacy.splits import draw, group_codes, outputs
from mleredux_techniques.results import Efficacy, Figure
from mleredux_techniques.schemas.cv import (
    CvAnalysis,
    CvMethod,
    GroupKey,
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)

if TYPE_CHECKING:
    import pandas as pd

MEASURE = "distance of the estimated loss from that of the private test, of a ridge and a forest"
NAIVE = KFold(name="KFold")
SEEDS = 5
SHARE = 0.8
"""For each seed, this share of the training rows (whole groups) and of the test rows is drawn."""
MAX_ROWS = 1_500
MAX_FOLDS = 10
"""Of a method with more folds, so many are carried out."""


def measure(document: CvAnalysis, dataset: Dataset) -> Efficacy:
    """Carry the recommended method out, and compare its estimate with what the private test says."""
    best = strong(dataset)
    names = ("naive", "strong", "recommended")
    methods = dict(zip(names, (NAIVE, best, document.method), strict=True))
    found: dict[str, list[float]] = {name: [] for name in names}
    optimism: list[float] = []
    try:
        for seed in range(SEEDS):
            private, estimates = _once(dataset, list(methods.values()), seed)
            for name, estimate in zip(names, estimates, strict=True):
                found[name].append(float(np.abs(estimate - private).mean()))
            optimism.append(float((private - estimates[2]).mean()))
    except CannotSplit as error:
        told = f"The recommended method can't be carried out: {error}"
        return Efficacy(0.0, 0.0, None, None, None, [Figure("efficacy", 0.0, told, score=0.0, weight=1.0)])
    rows = min(MAX_ROWS, len(dataset.train))
    sample = dataset.sample
    if rows < len(dataset.train):
        sample = f"{sample} Methods were carried out on {rows} of {len(dataset.train)} training rows.".strip()
    result = judge(
        *(Choice(np.array(found[name]), _told(methods[name])) for name in names),
        overlap=SHARE * 0.25,
        measure=MEASURE,
        sample=sample,
    )
    mean = round(float(np.mean(optimism)), 5)
    told = "Loss on the private test less the recommended method's estimate: far above 0, the method is too optimistic."
    return Efficacy(**{**vars(result), "parts": [*result.parts, Figure("optimism", mean, told)]})


def strong(dataset: Dataset) -> CvMethod:
    """What fits how the test was split off."""
    classes = dataset.problem != "regression"
    if dataset.group is not None:
        key = GroupKey(column=dataset.group.column, separator=dataset.group.separator)
        if classes:
            return StratifiedGroupKFold(name="StratifiedGroupKFold", groups=key)
        return GroupKFold(name="GroupKFold", groups=key)
    if dataset.time is not None:
        return TimeSeriesSplit(name="TimeSeriesSplit", time_column=dataset.time)
    if classes:
        return StratifiedKFold(name="StratifiedKFold")
    return NAIVE


def _once(dataset: Dataset, methods: list[CvMethod], seed: int) -> tuple[Array, list[Array]]:
    """Losses on the private test, and each method's estimates of them, one a model."""
    import pandas as pd

    groups = group_codes(dataset, dataset.train)
    most = min(MAX_ROWS, int(SHARE * len(dataset.train)))
    train = dataset.train.iloc[draw(groups, len(groups), most, seed=seed)].reset_index(drop=True)
    most = min(MAX_ROWS, int(SHARE * len(dataset.test)))
    test = dataset.test.iloc[draw(np.arange(len(dataset.test)), len(dataset.test), most, seed=seed)]
    frame = pd.concat([train, test], ignore_index=True)
    y, codes = outputs(dataset, frame)
    here, there = np.arange(len(train)), np.arange(len(train), len(frame))
    private = _losses(dataset, frame, y, codes, here, there, seed)
    estimates = []
    for method in methods:
        parts = folds(method, train, codes[here], classes=dataset.problem != "regression", seed=seed)
        chosen = [parts[place] for place in _spread(len(parts))]
        found = [_losses(dataset, frame, y, codes, rest, held, seed) for rest, held in chosen]
        estimates.append(np.average(found, axis=0, weights=[len(held) for _, held in chosen]))
    return private, estimates


def _spread(count: int) -> list[int]:
    """At most `MAX_FOLDS` numbers below the count, evenly."""
    return [int(place) for place in np.unique(np.linspace(0, count - 1, min(count, MAX_FOLDS)).round())]


def _losses(
    dataset: Dataset, frame: pd.DataFrame, y: Array, codes: Array, rest: Array, held: Array, seed: int
) -> Array:
    rows = Rows(
        train=frame.iloc[rest],
        held_out=frame.iloc[held],
        columns={name: dataset.kinds[name] for name in dataset.features},
        codes=codes[rest],
        classes=dataset.problem != "regression",
        seed=seed,
    )
    trained, judged = matrices(rows)
    mean = y[rest].mean(axis=0)
    return np.array(
        [
            loss(y[held], predict(model, trained, y[rest], judged, classes=rows.classes, seed=seed), mean)
            for model in MODELS
        ]
    )


def _told(method: CvMethod) -> str:
    options = ", ".join(f"{key}={value}" for key, value in method.model_dump(exclude={"name"}).items())
    return f"{method.name}({options})"
