"""Median absolute error."""

from __future__ import annotations

import numpy as np
from mleredux.errors import TaskBroken
from mleredux_tables import Array

from mleredux_graders.regression.values import columnwise_grader


def median_absolute_error(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> float:
    """Return the median of the absolute differences.

    Args:
        y_true: Shape (rows,).
        y_pred: Shape (rows,).

    Returns:
        0 or more.

    Raises:
        TaskBroken: Weights are given; a weighted median is not supported.
    """
    if sample_weight is not None:
        raise TaskBroken("The median absolute error does not support weights.", hint="Omit the option `weight`.")
    return float(np.median(np.abs(y_true - y_pred)))


GRADER = columnwise_grader("median-absolute-error", "Median absolute error", median_absolute_error)
