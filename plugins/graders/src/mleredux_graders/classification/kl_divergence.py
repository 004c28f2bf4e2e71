"""Kullback-Leibler divergence."""

from __future__ import annotations

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux_tables import Array, Options, Rows, define, numbers, within

from mleredux_graders.classification.scores import RowSum, check_row_sums


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


def _read(rows: Rows, options: KlOptions) -> Array:
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


def _score(rows: Rows, clipped: Array, options: KlOptions) -> float:
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


GRADER = define(
    "kl-divergence", "Kullback-Leibler divergence", "minimize", _read, _score, options=KlOptions, perfect=0.0
)
