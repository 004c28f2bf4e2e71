"""Errors of predicted numbers, including those of groups of rows and several columns; coefficient of determination."""

from __future__ import annotations

import numpy as np
from mleredux.errors import InvalidSubmission, TaskBroken
from mleredux.plugin.grader import Score
from mleredux_tables import Array, Rows, define, numbers

from mleredux_graders.directions import distance
from mleredux_graders.regression.values import ValueOptions, columnwise_grader, read_values, true_values


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


class GroupOptions(ValueOptions):
    """Options of the metric."""

    group: str
    """Column of the answers with the group of each row."""
    floor: float = 0.0
    """Lower bound of a group's mean error, before the logarithm is taken."""

    def answer_columns(self) -> tuple[str, ...]:
        """Return the columns that the options name."""
        return (*super().answer_columns(), self.group)


def group_log_mae(y_true: Array, y_pred: Array, groups: Array, *, floor: float = 0.0) -> dict[object, float]:
    """Return the natural logarithm of each group's mean absolute error.

    Args:
        y_true: Shape (rows,).
        y_pred: Shape (rows,).
        groups: Shape (rows,).
        floor: The smallest mean error of a group.

    Returns:
        One value per group; minus infinity for a group without error, if there is no floor.
    """
    import pandas as pd

    numbers, names = pd.factorize(groups, sort=True)
    errors = np.bincount(numbers, weights=np.abs(y_true - y_pred)) / np.bincount(numbers)
    with np.errstate(divide="ignore"):
        return dict(zip(names.tolist(), np.log(np.maximum(errors, floor)).tolist(), strict=True))


def _group_log_mae(rows: Rows, y_pred: Array, options: GroupOptions) -> Score:
    groups = group_log_mae(true_values(rows)[:, 0], y_pred[:, 0], rows.true(options.group), floor=options.floor)
    details = {str(name): value for name, value in groups.items()}
    return Score(value=float(np.mean(list(groups.values()))), details={"groups": details})


GROUP_LOG_MAE = define(
    "group-log-mae",
    "Mean log mean absolute error over groups",
    "minimize",
    read_values,
    _group_log_mae,
    options=GroupOptions,
    perfect=float("-inf"),
)


class McrmseOptions(ValueOptions):
    """Options of the metric."""

    scored: tuple[str, ...] = ()
    """Scored columns, if some required columns are not scored."""
    keep: str | None = None
    """Column of the answers that marks the scored rows."""
    keep_by_file_row: bool = False
    """Quirk of stanford-covid-vaccine: row r of the submission's FILE is scored if row r of the answers is scored; the
    selected rows of both are then paired in the order of their ids. This is correct only for submissions in the order
    of the answers."""

    def form_columns(self) -> tuple[str, ...]:
        """Return the columns that the options name."""
        return (*super().form_columns(), *((self.keep,) if self.keep else ()))


def _scored(rows: Rows, options: McrmseOptions) -> tuple[Array, Array]:
    """Return the scored rows of the submission and of the answers."""
    mine, theirs = rows.submission_rows, rows.answer_rows
    if options.keep is not None:
        kept = rows.answers[options.keep].astype(bool)
        order = np.argsort(rows.answers[rows.ids[0]][theirs], kind="stable")
        mine, theirs = mine[order], theirs[order]
        mine = mine[kept[mine] if options.keep_by_file_row else kept[theirs]]
        theirs = theirs[kept[theirs]]
    return mine, theirs


def _read_scored(rows: Rows, options: McrmseOptions) -> dict[str, Array]:
    mine, _ = _scored(rows, options)
    return {name: numbers(rows.submission[name][mine], name) for name in options.scored or rows.targets}


def _mcrmse(rows: Rows, predictions: dict[str, Array], options: McrmseOptions) -> Score:
    _, theirs = _scored(rows, options)
    errors = {
        name: root_mean_squared_error(numbers(rows.answers[name][theirs], name), y_pred)
        for name, y_pred in predictions.items()
    }
    return Score(value=float(np.mean(list(errors.values()))), details={"columns": errors})


MCRMSE = distance("mcrmse", "Mean columnwise root mean squared error", _read_scored, _mcrmse, options=McrmseOptions)
