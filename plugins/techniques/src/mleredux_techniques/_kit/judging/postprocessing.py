"""Post-processing of predictions: steps that are fitted on rows with known targets and applied to other rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from mleredux_techniques._kit.data.dataset import Array, Frame
from mleredux_techniques._kit.judging.scorer import Scorer

Step = Literal[
    "none", "temperature", "sigmoid", "isotonic", "thresholds", "labels", "clip", "mean", "median", "log_mean", "scale",
    "round",
]  # fmt: skip
OF_CLASSES = ("none", "temperature", "sigmoid", "isotonic", "thresholds", "labels", "clip")
OF_NUMBERS = ("none", "clip", "mean", "median", "log_mean", "scale", "round")
LEAST = 1e-4
CLIP = 0.02
ROWS_A_BIN, FEW_BINS, FEW_CLASSES = 40, 12, 8
_POWERS = np.geomspace(0.1, 10, 41)
_FACTORS = np.linspace(-4, 4, 17)
_RARITY = np.linspace(-1, 2, 10)


@dataclass(frozen=True)
class Known:
    """Predictions for rows with known targets.

    Attributes:
        predicted: Predicted probabilities of shape (rows, classes), or numbers of shape (rows, 1).
        codes: True class codes or numbers, of shape (rows,).
        frame: The rows.
    """

    predicted: Array
    codes: Array
    frame: Frame


def applied(steps: Sequence[Step], known: Known, predictions: Array, judge: Scorer, *, rough: bool = False) -> Array:
    """Apply post-processing steps, each fitted to the result of the previous ones.

    Args:
        rough: Whether to use common alternative fits: without penalty, or with a dozen bins.

    Raises:
        ValueError: A step does not apply to predictions of this kind.
    """
    possible, count = OF_NUMBERS if judge.form == "numbers" else OF_CLASSES, len(known.codes)
    for step in steps:
        if step not in possible:
            raise ValueError(f"{step} does not apply to predictions of {judge.form}")
        change = _of_numbers if judge.form == "numbers" else _of_classes
        both = change(step, known, np.vstack([known.predicted, predictions]), judge, rough)
        known, predictions = replace(known, predicted=both[:count]), both[count:]
    return predictions


def _of_classes(step: Step, known: Known, predictions: Array, judge: Scorer, rough: bool) -> Array:
    """Return probabilities after a step that is fitted to the known ones, which come first."""
    if step == "clip":
        return _normalised(np.maximum(predictions, CLIP))
    if step == "labels":
        return np.asarray(np.eye(predictions.shape[1])[predictions.argmax(axis=1)])
    if step == "temperature":
        rows = np.arange(len(known.codes))
        lost = [-np.log(powered(known.predicted, power)[rows, known.codes]).mean() for power in _POWERS]
        return powered(predictions, float(_POWERS[int(np.argmin(lost))]))
    if step == "sigmoid":
        return _sigmoid(known, predictions, 1e3 if rough else 1.0)
    if step == "thresholds":
        return _thresholds(known, predictions, judge, rough)
    return _isotonic(known, predictions) if step == "isotonic" else predictions


def _normalised(predictions: Array) -> Array:
    return np.asarray(predictions / predictions.sum(axis=1, keepdims=True))


def powered(predictions: Array, power: float) -> Array:
    """Return probabilities raised to a power, then normalized."""
    return _normalised(np.exp(power * np.log(np.clip(predictions, LEAST, 1.0))))


def weighted(predictions: Array, weights: Array) -> Array:
    """Return probabilities multiplied by a weight per class, then normalized."""
    return _normalised(np.clip(predictions, LEAST, 1.0) * weights)


def _sigmoid(known: Known, predictions: Array, penalty: float = 1.0) -> Array:
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(known.codes)) < 2:
        return predictions
    tool = LogisticRegression(C=penalty, max_iter=25)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations suffice
        tool.fit(np.log(np.clip(known.predicted, LEAST, 1.0)), known.codes)
    shares = np.full(predictions.shape, LEAST)
    shares[:, tool.classes_] = tool.predict_proba(np.log(np.clip(predictions, LEAST, 1.0)))
    return _normalised(shares)


def _isotonic(known: Known, predictions: Array) -> Array:
    from scipy.optimize import isotonic_regression
    from scipy.stats import rankdata

    columns = []
    for code, shares in enumerate(known.predicted.T.round(12)):
        places, place, sizes = np.unique(shares, return_inverse=True, return_counts=True)
        right = (known.codes == code).astype(float)
        rising = bool((rankdata(shares) - (len(shares) + 1) / 2) @ right >= 0)  # the sign of their rank correlation
        fitted = isotonic_regression(np.bincount(place, right) / sizes, weights=sizes, increasing=rising).x
        columns.append(np.interp(predictions[:, code], places, fitted))
    return _normalised(np.maximum(np.column_stack(columns), LEAST))


def _thresholds(known: Known, predictions: Array, judge: Scorer, rough: bool) -> Array:
    """Fit one factor for two classes; for several, a power of the class shares (on probabilities after `sigmoid`), then
    a factor for each of a few classes.
    """
    count = predictions.shape[1]
    predictions = _sigmoid(known, predictions) if count > 2 and not rough else predictions
    ours = predictions[: len(known.codes)]
    shares = np.maximum(np.bincount(known.codes, minlength=count), 1) / len(known.codes)
    options = [shares**-power for power in _RARITY] if count > 2 else [np.exp([0.0, t]) for t in _FACTORS]
    best = _best(options, lambda weights: weighted(ours, weights), known, judge)
    for code in range(count) if 2 < count <= FEW_CLASSES else ():
        factors = [best * np.where(np.arange(count) == code, factor, 1.0) for factor in np.exp(_FACTORS[::2])]
        best = _best(factors, lambda weights: weighted(ours, weights), known, judge)
    return weighted(predictions, best)


def _best(options: Sequence[Any] | Array, change: Callable[[Any], Array], known: Known, judge: Scorer) -> Any:
    """Return the option with the best metric score; the middle one among equally good ones."""
    losses: dict[bytes, float] = {}  # many options lead to the same labels

    def loss(predictions: Array) -> float:
        submitted = predictions.argmax(axis=1) if judge.form == "labels" else predictions
        if (key := submitted.tobytes()) not in losses:
            losses[key] = judge.loss(known.frame, known.codes, predictions)
        return losses[key]

    lost = np.round([loss(change(option)) for option in options], 9)
    places = np.flatnonzero(lost == lost.min())
    return options[int(places[len(places) // 2])]


def _of_numbers(step: Step, known: Known, predictions: Array, judge: Scorer, rough: bool) -> Array:
    """Return numbers after a step that is fitted to the known ones, which come first."""
    if step == "clip":
        return np.asarray(np.clip(predictions, known.codes.min(), known.codes.max()))
    if step == "round":
        return np.round(predictions)
    if step == "scale":
        near = _best(np.geomspace(0.25, 4, 9), lambda factor: factor * known.predicted, known, judge)
        factors = near * np.geomspace(2**-0.5, 2**0.5, 9)
        return np.asarray(_best(factors, lambda factor: factor * known.predicted, known, judge) * predictions)
    return predictions if step == "none" else _binned(step, known, predictions, rough)


def _binned(functional: str, known: Known, predictions: Array, rough: bool) -> Array:
    """Return the target functional in bins of similar predictions, interpolated; with fewer bins if `rough`."""
    ours = known.predicted[:, 0]
    order = np.argsort(ours, kind="stable")
    parts = np.array_split(order, FEW_BINS if rough else int(np.clip(len(order) // ROWS_A_BIN, 1, 30)))
    find: dict[str, Callable[[Array], float]] = {
        "mean": lambda values: float(values.mean()),
        "median": lambda values: float(np.median(values)),
        "log_mean": lambda values: float(np.expm1(np.log1p(np.maximum(values, 0)).mean())),
    }
    places = np.array([ours[part].mean() for part in parts])
    levels = np.array([find[functional](known.codes[part]) for part in parts])
    if rough:
        return np.asarray(levels[np.searchsorted((places[1:] + places[:-1]) / 2, predictions[:, 0])][:, None])
    return np.asarray(np.interp(predictions[:, 0], places, levels))[:, None]
