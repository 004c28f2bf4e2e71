"""Accuracy."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array

from mleredux_graders.classification.labels import LabelOptions, label_grader


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


GRADER = label_grader("accuracy", "Accuracy", "maximize", accuracy, options=LabelOptions, perfect=1.0)
