"""Root mean squared logarithmic error."""

from __future__ import annotations

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux_tables import Array, Rows

from mleredux_graders.regression.rmse import root_mean_squared_error
from mleredux_graders.regression.values import ValueOptions, columnwise_grader, read_values


def root_mean_squared_log_error(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> float:
    """Return the root mean squared difference of the natural logarithms of 1 + value.

    Args:
        y_true: Values above -1, shape (rows,).
        y_pred: The same.
        sample_weight: Shape (rows,).

    Returns:
        0 or more.
    """
    return root_mean_squared_error(np.log1p(y_true), np.log1p(y_pred), sample_weight=sample_weight)


def _read(rows: Rows, options: ValueOptions) -> Array:
    y_pred = read_values(rows, options)
    if (y_pred <= -1).any():
        raise InvalidSubmission("Predictions must be greater than -1, as the logarithm of 1 + prediction is taken.")
    return y_pred


GRADER = columnwise_grader("rmsle", "Root mean squared logarithmic error", root_mean_squared_log_error, read=_read)
