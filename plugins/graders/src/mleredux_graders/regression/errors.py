"""Errors of predicted numbers, absolute, squared, logarithmic and relative, and the coefficient of determination."""

from __future__ import annotations

import numpy as np
from mleredux.errors import InvalidSubmission, TaskBroken
from mleredux_tables import Array, Rows

from mleredux_graders.regression.values import ValueOptions, columnwise_grader, read_values


def mean_absolute_error(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> float:
    """Return the mean of the absolute differences.

    Args:
        y_true: Shape (rows,).
        y_pred: Shape (rows,).
        sample_weight: Shape (rows,).

    Returns:
        0 or more.
    """
    return float(np.average(np.abs(y_true - y_pred), weights=sample_weight))


MAE = columnwise_grader("mae", "Mean absolute error", mean_absolute_error)


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


MSE = columnwise_grader("mse", "Mean squared error", mean_squared_error)


def root_mean_squared_error(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> float:
    """Return the square root of the mean of the squared differences.

    Args:
        y_true: Shape (rows,).
        y_pred: Shape (rows,).
        sample_weight: Shape (rows,).

    Returns:
        0 or more.
    """
    return float(np.sqrt(np.average((y_true - y_pred) ** 2, weights=sample_weight)))


RMSE = columnwise_grader("rmse", "Root mean squared error", root_mean_squared_error)


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


def _read_logarithmic(rows: Rows, options: ValueOptions) -> Array:
    y_pred = read_values(rows, options)
    if (y_pred <= -1).any():
        raise InvalidSubmission("Predictions must be greater than -1, as the logarithm of 1 + prediction is taken.")
    return y_pred


RMSLE = columnwise_grader(
    "rmsle", "Root mean squared logarithmic error", root_mean_squared_log_error, read=_read_logarithmic
)


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


MAPE = columnwise_grader("mape", "Mean absolute percentage error", mean_absolute_percentage_error)


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


MEDIAN_ABSOLUTE_ERROR = columnwise_grader("median-absolute-error", "Median absolute error", median_absolute_error)


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


R2 = columnwise_grader("r2", "Coefficient of determination", r2_score, direction="maximize", perfect=1.0)
