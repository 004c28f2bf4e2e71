"""Coefficient of determination."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array

from mleredux_graders.regression.values import columnwise_grader


def r2_score(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> float:
    """Return the share of explained variance.

    Args:
        y_true: Shape (rows,).
        y_pred: Shape (rows,).
        sample_weight: Shape (rows,).

    Returns:
        At most 1; for a constant truth, 1 if predicted exactly, else 0.
    """
    mean = np.average(y_true, weights=sample_weight)
    residual = np.average((y_true - y_pred) ** 2, weights=sample_weight)
    total = np.average((y_true - mean) ** 2, weights=sample_weight)
    if total == 0:
        return 1.0 if residual == 0 else 0.0
    return float(1 - residual / total)


GRADER = columnwise_grader("r2", "Coefficient of determination", r2_score, direction="maximize", perfect=1.0)
