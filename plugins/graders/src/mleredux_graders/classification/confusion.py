"""The confusion matrix and statistics derived from it, shared by the metrics on labels."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array


def confusion(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> Array:
    """Return the summed row weights by true (first axis) and predicted label.

    Args:
        y_true: Labels as integers from 0, shape (rows,).
        y_pred: The same.

    Returns:
        float64, shape (labels, labels).
    """
    size = int(max(y_true.max(initial=-1), y_pred.max(initial=-1))) + 1
    counts = np.bincount(y_true * size + y_pred, weights=sample_weight, minlength=size * size)
    return counts.reshape(size, size).astype(np.float64)


def label_counts(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> tuple[Array, Array, Array]:
    """Return, per label, the numbers of correctly predicted, true, and predicted rows.

    No matrix is built, so that tens of thousands of labels are not a problem.

    Returns:
        Three float64 arrays, shape (labels,).
    """
    size = int(max(y_true.max(initial=-1), y_pred.max(initial=-1))) + 1
    weight = np.ones(len(y_true)) if sample_weight is None else sample_weight
    hits = np.bincount(y_true, weights=weight * (y_true == y_pred), minlength=size)
    true = np.bincount(y_true, weights=weight, minlength=size)
    predicted = np.bincount(y_pred, weights=weight, minlength=size)
    return hits, true, predicted


def ratio(numerator: Array | float, denominator: Array | float) -> Array:
    """Return a quotient; 0 if the denominator is 0."""
    top, bottom = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    return np.divide(top, bottom, out=np.zeros(np.broadcast(top, bottom).shape), where=bottom != 0)
