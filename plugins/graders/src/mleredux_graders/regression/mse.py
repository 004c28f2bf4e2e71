"""Mean squared error."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array

from mleredux_graders.regression.values import columnwise_grader


def mean_squared_error(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> float:
    """Return the mean of the squared differences.

    Args:
        y_true: Shape (rows,).
        y_pred: Shape (rows,).
        sample_weight: Shape (rows,).

    Returns:
        0 or more.
    """
    return float(np.average((y_true - y_pred) ** 2, weights=sample_weight))


GRADER = columnwise_grader("mse", "Mean squared error", mean_squared_error)
