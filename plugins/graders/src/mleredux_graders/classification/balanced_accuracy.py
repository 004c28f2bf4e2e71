"""Balanced accuracy."""

from __future__ import annotations

from mleredux_tables import Array

from mleredux_graders.classification.confusion import label_counts
from mleredux_graders.classification.labels import LabelOptions, label_grader


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


GRADER = label_grader(
    "balanced-accuracy", "Balanced accuracy", "maximize", balanced_accuracy, options=LabelOptions, perfect=1.0
)
