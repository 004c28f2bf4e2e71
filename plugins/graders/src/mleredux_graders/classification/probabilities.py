"""Losses of predicted probabilities: Brier score, log loss, weighted log loss, and Kullback-Leibler divergence."""

from __future__ import annotations

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux_tables import Array, Options, Rows, define, numbers, within
from pydantic import Field

from mleredux_graders.classification.scores import (
    ProbabilityOptions,
    RowSum,
    ScoreOptions,
    check_row_sums,
    read_probabilities,
    read_scores,
    true_indicators,
)
from mleredux_graders.directions import distance


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


BRIER = distance("brier", "Brier score", read_probabilities, _brier, options=ProbabilityOptions)


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


WEIGHTED_LOG_LOSS = distance(
    "weighted-log-loss",
    "Weighted multi-label log loss",
    read_scores,
    _weighted_log_loss,
    options=WeightedLogLossOptions,
)


class KlOptions(Options):
    """Options of the metric. The answers contain vote counts, or shares."""

    eps: float = 1e-15
    """Predictions are clipped to `[eps, 1 - eps]`; they are not rescaled."""
    row_sum: RowSum = RowSum()
    keep_missing: bool = False
    """Whether a missing prediction is omitted from its row's sums instead of being rejected."""
    integers_unclipped: bool = False
    """Quirk of hms: columns that are read as integers are not clipped, so that a 0 can make the score infinite."""
    check_further_columns: bool = False
    """Quirk of hms: additional columns must be numbers in 0..1 too, and all columns together must add up to 1."""


def kl_divergence(y_true: Array, y_pred: Array) -> float:
    """Return the mean over rows of the sum over classes of y ln(y / p), 0 for y = 0 (Kullback & Leibler 1951).

    Args:
        y_true: Shares, shape (rows, classes).
        y_pred: Probabilities of the same shape; NaN adds nothing.

    Returns:
        A number; infinite if a positive share is predicted to be 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(y_true > 0, y_true * np.log(y_true / y_pred), 0.0)
    return float(np.nansum(terms, axis=1).mean())


def _read_shares(rows: Rows, options: KlOptions) -> Array:
    finite = not options.keep_missing
    columns = {name: numbers(rows.predicted(name), name, finite=finite) for name in rows.targets}
    shares = np.column_stack(list(columns.values()))
    check_row_sums(_without_gaps(shares), options.row_sum)
    for name, values in columns.items():
        within(values[~np.isnan(values)], name, (0.0, 1.0))
    if options.check_further_columns:
        _check_further(rows, shares)
    clipped: Array = np.clip(shares, options.eps, 1 - options.eps)
    if options.integers_unclipped:
        whole = [rows.submission[name].dtype.kind in "iu" for name in rows.targets]
        clipped[:, whole] = shares[:, whole]
    return clipped


def _kl_divergence(rows: Rows, clipped: Array, options: KlOptions) -> float:
    votes = np.column_stack([numbers(rows.true(name), name) for name in rows.truth])
    return kl_divergence(votes / votes.sum(axis=1, keepdims=True), clipped)


def _without_gaps(values: Array) -> Array:
    return np.where(np.isnan(values), 0.0, values)


def _check_further(rows: Rows, shares: Array) -> None:
    further = [name for name in rows.submission.columns if name not in (*rows.ids, *rows.targets)]
    total = np.nansum(shares, axis=1)
    for name in further:
        values = rows.predicted(name)
        if values.dtype.kind == "O":
            raise InvalidSubmission(f"The extra column {name!r} must contain numbers, or be omitted.")
        values = _without_gaps(numbers(values, name, finite=False))
        total = total + within(values, name, (0.0, 1.0))
    check_row_sums(total[:, None], RowSum(rtol=1e-5, atol=1e-8))


KL_DIVERGENCE = distance(
    "kl-divergence", "Kullback-Leibler divergence", _read_shares, _kl_divergence, options=KlOptions
)
