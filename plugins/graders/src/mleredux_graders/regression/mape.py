"""Mean absolute percentage error."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array

from mleredux_graders.regression.values import columnwise_grader


def mean_absolute_percentage_error(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> float:
    """Return the mean of absolute differences divided by the absolute truth (at least the float64 epsilon).

    Args:
        y_true: Shape (rows,).
        y_pred: Shape (rows,).
        sample_weight: Shape (rows,).

    Returns:
        0 or more; a fraction, not a percentage.
    """
    relative = np.abs(y_true - y_pred) / np.maximum(np.abs(y_true), np.finfo(np.float64).eps)
    return float(np.average(relative, weights=sample_weight))


GRADER = columnwise_grader("mape", "Mean absolute percentage error", mean_absolute_percentage_error)
