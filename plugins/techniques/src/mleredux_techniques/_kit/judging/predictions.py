"""Out-of-fold and test predictions of the reference models, as files for techniques that ask about predictions.

Natural predictions are those of the reference models. In planted data they are distorted in known ways: probabilities
are multiplied by class weights and raised to a power, or moved to other columns; numbers are multiplied by a factor and
shifted by a share of their standard deviation, or moved close to the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mleredux.errors import NotApplicable

from mleredux_techniques._kit.data.dataset import Array, Dataset, Instance, remembered
from mleredux_techniques._kit.data.splits import Split, assign_folds, class_names, outputs, pool, sampled
from mleredux_techniques._kit.judging.plans import predicted, restored, rows_of
from mleredux_techniques._kit.judging.postprocessing import Known, powered, weighted
from mleredux_techniques._kit.judging.reference import MODELS
from mleredux_techniques._kit.judging.scorer import Scorer
from mleredux_techniques._kit.vocabulary.preprocessing import Rows, matrices

FILE = "predictions.csv"
ROWS = 1_200
DIGITS = 6
FOLDS, REPEATS = 5, 2
OVERLAP = 1 / (FOLDS - 1)
MIXED = 0.85
FRACTION = 0.45
CLASSES = ("flat", "flat", "turned", "turned", "strength")
"""Planted distortions of probabilities, drawn with equal probability; most steps repair the last one."""
KEY = "predictions"
"""The key of predictions in the truth, and of their distortions in `planted`."""


def out_of_fold(dataset: Dataset) -> dict[str, Any]:
    """Return rows of the (sampled) training table, and the out-of-fold predictions of each reference model.

    Values are rounded as in the public file.

    Raises:
        NotApplicable: The models have nothing to learn from.
    """
    if not dataset.features:
        raise NotApplicable(
            f"The question does not apply to {dataset.task}: it is about predictions of reference models, and its "
            "tables have no features in common."
        )

    def find() -> dict[str, Any]:
        small = sampled(dataset)
        data = pool(small, max_rows=ROWS, repeats=1)
        by_model = {model: np.full(data.y.shape, np.nan) for model in MODELS}
        for split in data.splits:
            for model, y in zip(MODELS, predicted(data, split, matrices(rows_of(data, split, {}))), strict=True):
                by_model[model][split.held_out] = restored(data, y)
        held = np.flatnonzero(~np.isnan(by_model[MODELS[0]][:, 0]))
        assert data.rows is not None
        values = {name: y[held] for name, y in by_model.items()}
        truth = data.codes[held, None] if dataset.problem == "regression" else data.y[held]
        return {"rows": data.rows[held].tolist(), "values": values, "truth": truth}

    held_out: dict[str, Any] = remembered(dataset, KEY, find)
    return held_out


def of_test(dataset: Dataset) -> dict[str, Any]:
    """Return rows of the (sampled) test table, and the predictions of each reference model fitted on training rows."""
    small = sampled(dataset)
    data, test = pool(small, max_rows=ROWS, repeats=1), small.test.head(ROWS).reset_index(drop=True)
    columns = {name: dataset.kinds[name] for name in dataset.features}
    x = matrices(Rows(data.frame, test, columns, data.codes, dataset.problem != "regression", 0))
    whole = Split(np.arange(len(data.frame)), np.arange(len(test)), 0)
    values = {model: restored(data, y) for model, y in zip(MODELS, predicted(data, whole, x), strict=True)}
    return {"rows": list(range(len(test))), "values": values, "truth": None}


def each_model(held_out: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    """Return the predictions of each model for the truth: natural ones, or those with planted distortions."""
    plans = dataset.planted.get(KEY) or {name: {"model": name} for name in held_out["values"]}
    values, truth = held_out["values"], held_out["truth"]
    return listed(held_out["rows"], {name: distorted(values[how["model"]], how, truth) for name, how in plans.items()})


def distorted(predictions: Array, how: dict[str, Any], truth: Array | None = None) -> Array:
    """Return predictions with a planted distortion.

    Args:
        truth: The true outputs, shaped like the predictions, as known to a model that was fitted to these rows.
    """
    if "mixed" in how:  # most rows get the predictions of other rows
        rng = np.random.default_rng(how["mixed"])
        places = np.flatnonzero(rng.random(len(predictions)) < MIXED)
        predictions = predictions.copy()
        predictions[places] = predictions[rng.permutation(places)]
    if truth is not None and "near" in how:
        return np.asarray(truth + np.random.default_rng(how["near"]).uniform(-FRACTION, FRACTION, predictions.shape))
    if truth is not None and "fitted" in how:
        predictions = how["fitted"] * truth + (1 - how["fitted"]) * predictions
    if not {"power", "weights", "turned"} & set(how):
        return np.asarray(predictions * how.get("factor", 1.0) + how.get("offset", 0.0) * predictions.std())
    changed = powered(weighted(predictions, np.array(how.get("weights", 1.0))), how.get("power", 1.0))
    return turned(changed) if how.get("turned") else changed


def turned(predictions: Array) -> Array:
    """Return probabilities with logarithms rotated by a quarter turn: each class gets the difference of two others.

    If the number of classes is odd, all columns together keep their information, while each alone contains little
    information about its class. With two classes, each gets the other's probability.
    """
    if predictions.shape[1] == 2:
        return predictions[:, ::-1]
    logs = np.log(predictions)
    return powered(np.exp((np.roll(logs, 1, axis=1) - np.roll(logs, -1, axis=1)) / 3**0.5), 1.0)


def listed(rows: list[int], values: dict[str, Array]) -> dict[str, Any]:
    """Return predictions as JSON values, for the truth.

    Means of targets in a leaf are often halfway between two rounded numbers, and their last bits depend on the version
    of NumPy. So they are rounded to more digits first.
    """
    rounded = {name: column.round(DIGITS + 3).round(DIGITS).tolist() for name, column in values.items()}
    return {"rows": rows, "values": rounded}


def known_of(instance: Instance, model: str, *, test: bool = False) -> Known:
    """Return the predictions of a model that are stored in the truth, for training rows or for test rows."""
    held, small = instance.truth[f"test {KEY}" if test else KEY], sampled(instance.dataset)
    frame = (small.test if test else small.train).iloc[held["rows"]].reset_index(drop=True)
    return Known(np.array(held["values"][model]), outputs(instance.dataset, frame)[1], frame)


def table(dataset: Dataset, held: dict[str, Any], *, test: bool = False) -> str:
    """Return the public file: ids, targets (if known), and a column `MODEL` or `MODEL CLASS` per prediction."""
    import pandas as pd

    small = sampled(dataset)
    frame = (small.test if test else small.train).iloc[held["rows"]].reset_index(drop=True)
    columns: dict[str, Any] = {name: frame[name] for name in dataset.ids}
    columns |= {} if test else {"target": frame[dataset.target]}
    for model, values in held["values"].items():
        predictions = np.array(values)
        names = [model] if dataset.problem == "regression" else [f"{model} {name}" for name in class_names(dataset)]
        columns |= {name: predictions[:, place] for place, name in enumerate(names)}
    text: str = pd.DataFrame(columns).to_csv(index=False, lineterminator="\n")
    return text


def losses(
    judge: Scorer, known: Sequence[Known], carry: Callable[..., Array], seed: int = 0, repeats: int = REPEATS
) -> Array:
    """Return the losses of predictions for held-out rows, one per split.

    Args:
        known: The predictions of each model for the same rows.
        carry: Maps the models' predictions for the rows to fit on, and for the held-out rows, to the predictions to
            score; `split` is the split's name.
        seed: Seed of the folds.
    """
    codes, frame = known[0].codes, known[0].frame
    strata = np.zeros(len(codes), dtype=int) if judge.form == "numbers" else codes
    losses_of = []
    for repeat in range(repeats):
        folds = assign_folds(strata, None, FOLDS, seed=seed * REPEATS + repeat)
        for fold in range(FOLDS):
            fit, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            rows = frame.iloc[fit]
            parts = [Known(model.predicted[fit], codes[fit], rows) for model in known]
            predictions = carry(parts, [model.predicted[held] for model in known], split=f"{seed} {repeat} {fold}")
            losses_of.append(judge.loss(frame.iloc[held], codes[held], predictions))
    return np.array(losses_of)
