"""Cohen's kappa."""

from __future__ import annotations

from typing import Literal

import numpy as np
from mleredux_tables import Array, Rows, define, numbers, within

from mleredux_graders.classification.confusion import confusion
from mleredux_graders.classification.labels import LabelOptions, matched_labels, read_labels


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


GRADER = define("cohen-kappa", "Cohen's kappa", "maximize", _read, _score, options=KappaOptions, perfect=1.0)
QUADRATIC = define(
    "quadratic-weighted-kappa",
    "Quadratic weighted kappa",
    "maximize",
    _read,
    _quadratic,
    options=ScaleOptions,
    perfect=1.0,
)
