"""Mean over groups of the logarithm of the mean absolute error."""

from __future__ import annotations

import numpy as np
from mleredux.plugin.grader import Score
from mleredux_tables import Array, Rows, define

from mleredux_graders.regression.values import ValueOptions, read_values, true_values


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


def _score(rows: Rows, y_pred: Array, options: GroupOptions) -> Score:
    groups = group_log_mae(true_values(rows)[:, 0], y_pred[:, 0], rows.true(options.group), floor=options.floor)
    details = {str(name): value for name, value in groups.items()}
    return Score(value=float(np.mean(list(groups.values()))), details={"groups": details})


GRADER = define(
    "group-log-mae",
    "Mean log mean absolute error over groups",
    "minimize",
    read_values,
    _score,
    options=GroupOptions,
    perfect=float("-inf"),
)
