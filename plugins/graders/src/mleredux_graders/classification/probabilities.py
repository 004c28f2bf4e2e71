"""Losses of predicted probabilities: Brier score, log loss, and weighted log loss."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array, Rows, define, numbers
from pydantic import Field

from mleredux_graders.classification.scores import (
    ProbabilityOptions,
    ScoreOptions,
    read_probabilities,
    read_scores,
    true_indicators,
)


def brier(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> float:
    """Return the mean squared distance of probabilities from the truth (Brier 1950).

    Args:
        y_true: 0 and 1, shape (rows, classes), or (rows, 1) for binary classification.
        y_pred: Probabilities of the same shape.

    Returns:
        0 to 1 for one column, 0 to 2 for several (summed over classes).
    """
    return float(np.average(((y_true - y_pred) ** 2).sum(axis=1), weights=sample_weight))


def _brier(rows: Rows, y_pred: Array, options: ProbabilityOptions) -> float:
    return brier(true_indicators(rows), y_pred, sample_weight=rows.weight)


BRIER = define("brier", "Brier score", "minimize", read_probabilities, _brier, options=ProbabilityOptions, perfect=0.0)


EPS = float(np.finfo(np.float64).eps)


class LogLossOptions(ProbabilityOptions):
    """Options of log loss."""

    eps: float = EPS
    """Probabilities are clipped to `[eps, 1 - eps]`; they are not rescaled."""


def log_loss(y_true: Array, y_pred: Array, *, eps: float = EPS, sample_weight: Array | None = None) -> float:
    """Return the mean negative logarithm of the probability assigned to the true class.

    Args:
        y_true: 0 and 1 per class, shape (rows, classes); or (rows, 1) for binary classification.
        y_pred: Probabilities of the same shape.
        eps: Probabilities are clipped to `[eps, 1 - eps]`.
        sample_weight: Shape (rows,).

    Returns:
        0 or more (only nearly 0, because of the clipping).
    """
    if y_true.shape[1] == 1:
        y_true = np.hstack([1 - y_true, y_true])
        y_pred = np.hstack([1 - y_pred, y_pred])
    losses = -(y_true * np.log(np.clip(y_pred, eps, 1 - eps))).sum(axis=1)
    return float(np.average(losses, weights=sample_weight))


def _log_loss(rows: Rows, y_pred: Array, options: LogLossOptions) -> float:
    return log_loss(true_indicators(rows), y_pred, eps=options.eps, sample_weight=rows.weight)


LOG_LOSS = define(
    "log-loss", "Log loss", "minimize", read_probabilities, _log_loss, options=LogLossOptions, perfect=EPS
)


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


def _weighted_log_loss(rows: Rows, y_prob: Array, options: WeightedLogLossOptions) -> float:
    import pandas as pd

    y_true = numbers(rows.true(rows.truth[0]), rows.truth[0])
    labels, names = pd.factorize(rows.true(options.label))
    by_label = np.array([options.weights.get(str(name), options.other_weights) for name in names], dtype=np.float64)
    weights = np.where(y_true == 1, by_label[labels, 1], by_label[labels, 0])
    groups, _ = pd.factorize(rows.true(options.group))
    return grouped_log_loss(y_true, y_prob[:, 0], weights, groups, eps=options.eps)


WEIGHTED_LOG_LOSS = define(
    "weighted-log-loss",
    "Weighted multi-label log loss",
    "minimize",
    read_scores,
    _weighted_log_loss,
    options=WeightedLogLossOptions,
    perfect=0.0,
)
