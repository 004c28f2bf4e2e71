"""Log loss with several labels per group, weighted by label and true value."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array, Rows, define, numbers
from pydantic import Field

from mleredux_graders.classification.scores import ScoreOptions, read_scores


class WeightedLogLossOptions(ScoreOptions):
    """Options of the metric."""

    bounds: tuple[float | None, float | None] | None = (0.0, 1.0)
    group: str
    """Column of the answers with the group of the labels (a study)."""
    label: str
    """Column of the answers with the name of the label."""
    weights: dict[str, tuple[float, float]] = Field(default={})
    """Weights of a row by its label, for true values of 0 and of 1."""
    other_weights: tuple[float, float] = (1.0, 1.0)
    """The same for all other labels."""
    eps: float = 1e-15
    """Probabilities are clipped to `[eps, 1 - eps]`."""

    def answer_columns(self) -> tuple[str, ...]:
        """Return the columns that the options name."""
        return (*super().answer_columns(), self.group, self.label)


def grouped_log_loss(y_true: Array, y_prob: Array, weights: Array, groups: Array, *, eps: float) -> float:
    """Return the mean over groups of the weighted mean binary log loss within each group.

    Args:
        y_true: 0 and 1, shape (rows,).
        y_prob: Shape (rows,).
        weights: Shape (rows,).
        groups: Integers from 0, shape (rows,).

    Returns:
        0 or more (only nearly 0, because of the clipping).
    """
    y_prob = np.clip(y_prob, eps, 1 - eps)
    losses = -(y_true * np.log(y_prob) + (1 - y_true) * np.log(1 - y_prob))
    return float((np.bincount(groups, weights * losses) / np.bincount(groups, weights)).mean())


def _score(rows: Rows, y_prob: Array, options: WeightedLogLossOptions) -> float:
    import pandas as pd

    y_true = numbers(rows.true(rows.truth[0]), rows.truth[0])
    labels, names = pd.factorize(rows.true(options.label))
    by_label = np.array([options.weights.get(str(name), options.other_weights) for name in names], dtype=np.float64)
    weights = np.where(y_true == 1, by_label[labels, 1], by_label[labels, 0])
    groups, _ = pd.factorize(rows.true(options.group))
    return grouped_log_loss(y_true, y_prob[:, 0], weights, groups, eps=options.eps)


GRADER = define(
    "weighted-log-loss",
    "Weighted multi-label log loss",
    "minimize",
    read_scores,
    _score,
    options=WeightedLogLossOptions,
    perfect=0.0,
)
