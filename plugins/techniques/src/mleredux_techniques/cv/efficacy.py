"""Efficacy of cross-validation: how close its estimate is to the score on the private test.

Naive: KFold with five shuffled folds, whatever the structure of the rows. Strong: the method that matches
how the test was split off: by group, by time, or at random. A method that puts rows of one group on both sides, or uses
later rows to predict earlier ones, is detected by its optimism.

One private test of some hundred rows is noisy. Therefore more tests are split off all rows in the same way (complete
groups, the latest rows, or at random), and the score uses the mean difference over all of them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mleredux_techniques._kit.comparison import Choice, judge
from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.memory import remembered
from mleredux_techniques._kit.plans import Array
from mleredux_techniques._kit.preprocessing import Rows, matrices
from mleredux_techniques._kit.reference import MODELS, loss, predict
from mleredux_techniques._kit.results import Efficacy, Figure
from mleredux_techniques._kit.spec import Instance
from mleredux_techniques._kit.splits import draw, group_codes, outputs
from mleredux_techniques.cv.document import (
    CvAnalysis,
    CvMethod,
    GroupKey,
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)
from mleredux_techniques.cv.folds import CannotSplit, folds

if TYPE_CHECKING:
    import pandas as pd

MEASURE = "mean difference of the estimated loss from that of the test, of a ridge and a forest"
NAIVE = KFold(name="KFold")
TESTS = 6
"""Number of tests: the private one, and others that are split off in the same way."""
SHARE = 0.85
"""For a split by time: the share of rows drawn for each test."""
MAX_ROWS = 2_000
MAX_FOLDS = 10
"""Maximum number of folds executed per method."""


def measure(document: CvAnalysis, instance: Instance) -> Efficacy:
    """Execute the recommended method, and compare its estimate with the private test."""
    dataset = instance.dataset
    names = ("naive", "strong", "recommended")
    methods = dict(zip(names, (NAIVE, strong(dataset), document.method), strict=True))
    found: dict[str, list[float]] = {name: [] for name in names}
    whole, private = _rows(dataset)
    try:
        for number in range(TESTS):
            truth, estimates = _once(dataset, whole, private, list(methods.values()), number)
            for name, estimate in zip(names, estimates, strict=True):
                found[name].append(float((truth - estimate).mean()))
    except CannotSplit as error:
        told = f"The recommended method can't be executed: {error}"
        return Efficacy(0.0, 0.0, None, None, None, [Figure("efficacy", 0.0, told, score=0.0, weight=1.0)])
    rows = len(dataset.train) + len(dataset.test)
    sample = dataset.sample
    if len(whole) < rows:
        sample = f"{sample} Methods were executed on {len(whole)} of {rows} rows.".strip()
    result = judge(
        *(Choice(_distance(np.array(found[name])), _told(methods[name])) for name in names),
        overlap=len(dataset.test) / len(dataset.train),
        measure=MEASURE,
        sample=sample,
    )
    mean = round(float(np.mean(found["recommended"])), 5)
    told = "Loss on the tests minus the recommended method's estimate: above 0, the method is too optimistic."
    return Efficacy(**{**vars(result), "parts": [*result.parts, Figure("optimism", mean, told)]})


def _distance(differences: Array) -> Array:
    """Return differences with a non-negative mean: random errors in both directions cancel out."""
    return differences * (1.0 if differences.mean() >= 0 else -1.0)


def strong(dataset: Dataset) -> CvMethod:
    """Return the method that matches how the test was split off."""
    classes = dataset.problem != "regression"
    if dataset.group is not None:
        key = GroupKey(column=dataset.group.column, separator=dataset.group.separator)
        if classes:
            return StratifiedGroupKFold(name="StratifiedGroupKFold", groups=key)
        return GroupKFold(name="GroupKFold", groups=key)
    if dataset.time is not None:
        return TimeSeriesSplit(name="TimeSeriesSplit", time_column=dataset.time, n_splits=3)
    if classes:
        return StratifiedKFold(name="StratifiedKFold")
    return NAIVE


def _rows(dataset: Dataset) -> tuple[pd.DataFrame, Array]:
    """Return training and test rows (at most `MAX_ROWS`, complete groups), and which are in the private test."""
    import pandas as pd

    whole = pd.concat([dataset.train, dataset.test], ignore_index=True)
    private = np.repeat([False, True], [len(dataset.train), len(dataset.test)])
    kept = draw(group_codes(dataset, whole), len(whole), MAX_ROWS, seed=0)
    return whole.iloc[kept].reset_index(drop=True), private[kept]


def _test_rows(dataset: Dataset, whole: pd.DataFrame, private: Array, number: int) -> tuple[Array, Array]:
    """Yield row numbers for training and for the test: the private one first, then others split off the same way."""
    rng = np.random.default_rng(number)
    if dataset.time is not None:
        rows = np.sort(rng.permutation(len(whole))[: int(SHARE * len(whole))])
        return rows[~private[rows]], rows[private[rows]]
    if number == 0:
        return np.flatnonzero(~private), np.flatnonzero(private)
    groups = group_codes(dataset, whole)
    shuffled = rng.permutation(groups.max() + 1)
    later = np.cumsum(np.bincount(groups)[shuffled]) > (~private).sum()
    test = np.isin(groups, shuffled[later])
    return np.flatnonzero(~test), np.flatnonzero(test)


def _once(
    dataset: Dataset, whole: pd.DataFrame, private: Array, methods: list[CvMethod], number: int
) -> tuple[Array, list[Array]]:
    """Return the losses on one test, and each method's estimates of them, one per model."""
    y, codes = outputs(dataset, whole)
    rows, test = _test_rows(dataset, whole, private, number)
    truth = remembered(dataset, f"test {number}", lambda: _losses(dataset, whole, y, codes, rows, test, number))
    train = whole.iloc[rows].reset_index(drop=True)

    def estimate(method: CvMethod) -> Array:
        parts = folds(method, train, codes[rows], classes=dataset.problem != "regression", seed=number)
        chosen = [parts[place] for place in _spread(len(parts))]
        found = [_losses(dataset, whole, y, codes, rows[rest], rows[held], number) for rest, held in chosen]
        return np.asarray(np.average(found, axis=0, weights=[len(held) for _, held in chosen]))

    return truth, [remembered(dataset, f"{number} {method!r}", partial(estimate, method)) for method in methods]


def _spread(count: int) -> list[int]:
    """Return at most `MAX_FOLDS` evenly spaced numbers below the count."""
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
