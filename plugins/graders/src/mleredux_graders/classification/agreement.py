"""Agreement of labels: accuracy, balanced accuracy, error rate, Matthews correlation and kappa."""

from __future__ import annotations

from typing import Literal

import numpy as np
from mleredux_tables import Array, Rows, numbers, within

from mleredux_graders.classification.labels import (
    LabelOptions,
    confusion,
    label_counts,
    label_grader,
    matched_labels,
    read_labels,
)
from mleredux_graders.directions import similarity


def accuracy(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> float:
    """Return the share of rows with the correct label.

    Args:
        y_true: Labels, shape (rows,).
        y_pred: Labels, shape (rows,).
        sample_weight: Shape (rows,).

    Returns:
        0 to 1.
    """
    return float(np.average(y_true == y_pred, weights=sample_weight))


ACCURACY = label_grader("accuracy", "Accuracy", accuracy, options=LabelOptions)


def error_rate(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> float:
    """Return the share of rows with a wrong label."""
    return 1.0 - accuracy(y_true, y_pred, sample_weight=sample_weight)


ERROR_RATE = label_grader(
    "error-rate", "Classification error", error_rate, options=LabelOptions, direction="minimize", perfect=0.0
)


def balanced_accuracy(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> float:
    """Return the mean recall over the classes that occur in the truth.

    Args:
        y_true: Labels as integers from 0, shape (rows,).
        y_pred: The same.

    Returns:
        0 to 1.
    """
    hits, true, _ = label_counts(y_true, y_pred, sample_weight=sample_weight)
    occurs = true > 0
    return float((hits[occurs] / true[occurs]).mean())


BALANCED_ACCURACY = label_grader("balanced-accuracy", "Balanced accuracy", balanced_accuracy, options=LabelOptions)


def matthews_correlation(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> float:
    """Return the correlation of true and predicted labels, for any number of classes (Gorodkin 2004).

    Args:
        y_true: Labels as integers from 0, shape (rows,).
        y_pred: The same.

    Returns:
        -1 to 1; 0 if either side is constant.
    """
    hits, true, predicted = label_counts(y_true, y_pred, sample_weight=sample_weight)
    total = true.sum()
    covariance = hits.sum() * total - true @ predicted
    spread = (total**2 - true @ true) * (total**2 - predicted @ predicted)
    return float(covariance / np.sqrt(spread)) if spread > 0 else 0.0


MATTHEWS_CORRELATION = label_grader(
    "matthews-correlation", "Matthews correlation", matthews_correlation, options=LabelOptions
)


class ScaleOptions(LabelOptions):
    """Options of kappa on grades."""

    scale: tuple[int, int] | None = None
    """The smallest and the largest grade; integers outside are rejected, and distances are those of the grades."""


class KappaOptions(ScaleOptions):
    """Options of kappa."""

    weights: Literal["none", "linear", "quadratic"] = "none"


def cohen_kappa(y_true: Array, y_pred: Array, *, weights: str = "none", sample_weight: Array | None = None) -> float:
    """Return the agreement beyond chance (Cohen 1960; weighted, Cohen 1968).

    Distances are between the positions of two labels in the sorted list of all labels that occur, as in scikit-learn.

    Args:
        y_true: Labels as integers from 0, shape (rows,).
        y_pred: The same.
        weights: `none`, `linear` or `quadratic`.

    Returns:
        At most 1; NaN if both sides are the same constant.
    """
    observed = confusion(y_true, y_pred, sample_weight=sample_weight)
    positions = np.arange(len(observed))
    distance = np.abs(positions[:, None] - positions[None, :]).astype(np.float64)
    if weights == "none":
        distance = (distance > 0).astype(np.float64)
    elif weights == "quadratic":
        distance **= 2
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / observed.sum()
    chance = (distance * expected).sum()
    return float(1 - (distance * observed).sum() / chance) if chance else float("nan")


def _read(rows: Rows, options: ScaleOptions) -> Array:
    labels = read_labels(rows, options)
    return labels if options.scale is None else within(numbers(labels, rows.targets[0]), rows.targets[0], options.scale)


def _matched_grades(rows: Rows, y_pred: Array, options: ScaleOptions) -> tuple[Array, Array]:
    """Return labels as integers from 0: positions on the scale if there is one, else in the list of all labels."""
    if options.scale is None:
        return matched_labels(rows, y_pred, options)
    (truth,), (low, _) = rows.truth, options.scale
    y_true = within(numbers(rows.true(truth), truth), truth, options.scale)
    return (y_true - low).astype(np.int64), (y_pred - low).astype(np.int64)


def _score(rows: Rows, y_pred: Array, options: KappaOptions) -> float:
    grades = _matched_grades(rows, y_pred, options)
    return cohen_kappa(*grades, weights=options.weights, sample_weight=rows.weight)


def _quadratic(rows: Rows, y_pred: Array, options: ScaleOptions) -> float:
    return cohen_kappa(*_matched_grades(rows, y_pred, options), weights="quadratic", sample_weight=rows.weight)


COHEN_KAPPA = similarity("cohen-kappa", "Cohen's kappa", _read, _score, options=KappaOptions)
QUADRATIC = similarity("quadratic-weighted-kappa", "Quadratic weighted kappa", _read, _quadratic, options=ScaleOptions)
