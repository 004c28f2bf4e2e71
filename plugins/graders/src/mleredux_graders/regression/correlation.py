"""Pearson's and Spearman's correlation."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array, Rows, is_missing, numbers, refuse

from mleredux_graders.directions import similarity
from mleredux_graders.regression.values import ValueOptions


class CorrelationOptions(ValueOptions):
    """Options of correlations."""

    keep_nan: bool = False
    """Whether a missing value (or infinite one, for Pearson's) makes the score NaN instead of being rejected."""


class SpearmanOptions(CorrelationOptions):
    """Options of Spearman's correlation."""

    rank_text: bool = False
    """Whether a text column is ranked as text, and an infinite number as a number, instead of being rejected."""


def pearson(y_true: Array, y_pred: Array) -> float:
    """Return Pearson's correlation coefficient.

    Args:
        y_true: Shape (rows,).
        y_pred: Shape (rows,).

    Returns:
        -1 to 1; NaN if either side is constant or has a value that is not finite.
    """
    if len(y_true) < 2 or (y_true == y_true[0]).all() or (y_pred == y_pred[0]).all():
        return float("nan")
    x, y = y_true - y_true.mean(), y_pred - y_pred.mean()
    scale_x, scale_y = np.abs(x).max(), np.abs(y).max()
    x, y = x / scale_x, y / scale_y  # so that squares neither overflow nor underflow
    return float(np.clip((x @ y) / np.sqrt((x @ x) * (y @ y)), -1, 1))


def average_ranks(values: Array) -> Array:
    """Return ranks from 1; equal values share their mean rank.

    Args:
        values: Numbers or texts, none missing, shape (rows,).

    Returns:
        float64, shape (rows,).
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(values) else np.empty(0, np.intp)
    ends = np.append(starts[1:], len(values))
    ranks = np.empty(len(values))
    ranks[order] = np.repeat((starts + 1 + ends) / 2, ends - starts)
    return ranks


def spearman(y_true: Array, y_pred: Array) -> float:
    """Return Spearman's rank correlation, with average ranks for ties.

    Args:
        y_true: Numbers or texts, shape (rows,).
        y_pred: The same.

    Returns:
        -1 to 1; NaN if either side is constant.
    """
    return pearson(average_ranks(y_true), average_ranks(y_pred))


def _read_numbers(rows: Rows, options: CorrelationOptions) -> list[Array]:
    return [numbers(rows.predicted(name), name, finite=not options.keep_nan) for name in rows.targets]


def _pearson(rows: Rows, y_pred: list[Array], options: CorrelationOptions) -> float:
    pairs = zip(rows.truth, y_pred, strict=True)
    return float(np.mean([pearson(numbers(rows.true(truth), truth), column) for truth, column in pairs]))


def _read_ranked(rows: Rows, options: SpearmanOptions) -> list[Array | None]:
    """Read columns of numbers or text; None for a column that makes the score NaN."""

    def column(name: str) -> Array | None:
        y_pred = rows.predicted(name)
        if options.keep_nan and is_missing(y_pred).any():
            return None
        if y_pred.dtype.kind != "O" or not options.rank_text:
            y_pred = numbers(y_pred, name, finite=not options.rank_text)
            refuse(np.isnan(y_pred), f"Column {name!r} must contain numbers only; row {{row}} is missing.")
        return y_pred

    return [column(name) for name in rows.targets]


def _spearman(rows: Rows, y_pred: list[Array | None], options: SpearmanOptions) -> float:
    pairs = zip(rows.truth, y_pred, strict=True)
    return float(
        np.mean(
            [
                float("nan") if column is None else spearman(numbers(rows.true(truth), truth), column)
                for truth, column in pairs
            ]
        )
    )


GRADER = similarity("pearson", "Pearson correlation", _read_numbers, _pearson, options=CorrelationOptions)
SPEARMAN = similarity("spearman", "Spearman correlation", _read_ranked, _spearman, options=SpearmanOptions)
