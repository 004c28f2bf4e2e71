"""Predicted numbers aligned with the truth, shared by the metrics on numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mleredux.errors import TaskBroken
from mleredux.plugin.grader import Grader, Score
from mleredux.plugin.task import Direction
from mleredux_tables import Array, Options, Rows, define, numbers, within

ColumnMetric = Callable[..., float]
"""`metric(y_true, y_pred, sample_weight=...)` on arrays of shape (rows,)."""


class ValueOptions(Options):
    """Options of the metrics on numbers."""

    bounds: tuple[float | None, float | None] | None = None
    """The smallest and the largest allowed prediction, both inclusive."""
    decimals: int | None = None
    """Number of decimals that the score is rounded to, with halves rounded to even."""


def read_values(rows: Rows, options: ValueOptions) -> Array:
    """Return the predictions of all target columns, float64, shape (rows, targets).

    Raises:
        InvalidSubmission: A prediction is not a number, out of bounds, missing or infinite.
    """
    return np.column_stack([within(numbers(rows.predicted(name), name), name, options.bounds) for name in rows.targets])


def true_values(rows: Rows) -> Array:
    """Return the truth of all target columns, float64, shape (rows, targets)."""
    pairs = zip(rows.targets, rows.truth, strict=True)
    return np.column_stack([numbers(rows.true(truth), truth, finite=False) for _, truth in pairs])


def columnwise(metric: ColumnMetric, y_true: Array, y_pred: Array, rows: Rows, options: ValueOptions) -> Score:
    """Return the mean of a metric over columns, with each column's value in the details."""
    if not len(rows):
        raise TaskBroken("The answers contain no scored row.", hint="Prepare the task again.")
    values = [metric(y_true[:, i], y_pred[:, i], sample_weight=rows.weight) for i in range(y_true.shape[1])]
    mean = float(np.mean(values))
    if options.decimals is not None and np.isfinite(mean):
        mean = round(mean, options.decimals)
    return Score(
        value=mean, details={"columns": dict(zip(rows.targets, values, strict=True))} if len(values) > 1 else {}
    )


def columnwise_grader(
    id: str,
    title: str,
    metric: ColumnMetric,
    *,
    direction: Direction = "minimize",
    perfect: float = 0.0,
    read: Callable[[Rows, ValueOptions], Array] = read_values,
) -> Grader:
    """Return a grader that averages a metric over the target columns."""

    def score(rows: Rows, y_pred: Array, options: ValueOptions) -> Score:
        return columnwise(metric, true_values(rows), y_pred, rows, options)

    return define(id, title, direction, read, score, options=ValueOptions, perfect=perfect)
