"""Classification error."""

from __future__ import annotations

from mleredux_tables import Array

from mleredux_graders.classification.accuracy import accuracy
from mleredux_graders.classification.labels import LabelOptions, label_grader


def error_rate(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> float:
    """Return the share of rows with a wrong label."""
    return 1.0 - accuracy(y_true, y_pred, sample_weight=sample_weight)


GRADER = label_grader("error-rate", "Classification error", "minimize", error_rate, options=LabelOptions, perfect=0.0)
