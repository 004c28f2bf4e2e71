"""Laplace log likelihood of values with a confidence."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux.models.formats import counted
from mleredux_tables import Array, Options, Rows, Table, define, is_missing, match_rows, numbers


class LaplaceOptions(Options):
    """Options of the metric: two target columns, the value and its confidence; ids `<group>_<time>`."""

    last: int | None = None
    """Number of rows scored per group: the latest ones with a true value."""
    missing_rows: Literal["refuse", "drop"] = "refuse"
    """`drop`: scored rows that were not submitted are omitted."""
    least_confidence: float = 70.0
    largest_error: float = 1000.0


def laplace_log_likelihood(
    y_true: Array, y_pred: Array, confidence: Array, *, least_confidence: float = 70.0, largest_error: float = 1000.0
) -> float:
    """Return the mean of -sqrt(2) d / s - ln(sqrt(2) s), where d is the error and s the confidence, both clipped.

    Args:
        y_true: Shape (rows,).
        y_pred: Shape (rows,).
        confidence: Standard deviations, shape (rows,).

    Returns:
        At most -ln(sqrt(2) least_confidence).
    """
    s = np.maximum(confidence, least_confidence)
    d = np.minimum(np.abs(y_true - y_pred), largest_error)
    return float(np.mean(-np.sqrt(2) * d / s - np.log(np.sqrt(2) * s))) if len(y_true) else float("nan")


def _latest(ids: Array, scored: Array, last: int | None) -> Array:
    """Return the numbers of scored rows: those with a true value that are among the latest of their group."""
    rows = np.flatnonzero(scored)
    if last is None or not len(rows):
        return rows
    import pandas as pd

    parts = [str(ids[row]).rpartition("_") for row in rows]
    groups, _ = pd.factorize(np.array([group for group, _, _ in parts], dtype=object))
    times = np.array([int(time) for _, _, time in parts])
    order = np.lexsort((-times, groups))
    place = np.arange(len(order)) - np.searchsorted(groups[order], groups[order], "left")
    return np.sort(rows[order[place < last]])


class _Predictions(NamedTuple):
    """Matched predictions, shape (rows,) each.

    Attributes:
        answer_rows: Row numbers in the answers.
    """

    answer_rows: Array
    values: Array
    deviations: Array


def _drop(answers: Table, options: LaplaceOptions, truth: tuple[str, ...]) -> Array:
    return is_missing(answers[truth[0]])


def _read(rows: Rows, options: LaplaceOptions) -> _Predictions:
    (key,), (value, confidence) = rows.ids, rows.targets
    mine, theirs = rows.submission, rows.answers
    unknown = ~np.isin(mine[key].astype(object), theirs[key].astype(object)) | is_missing(mine[key])
    if unknown.any():
        raise InvalidSubmission(
            f"Column {key!r} has {counted(int(unknown.sum()), 'row')} that the sample does not have."
        )
    for name in (value, confidence):
        if mine[name].dtype.kind == "O":
            raise InvalidSubmission(f"Column {name!r} must contain numbers only.")
    scored = np.ones(len(theirs), dtype=bool) if rows.dropped is None else ~rows.dropped
    answer_rows = _latest(theirs[key], scored, options.last)
    if options.missing_rows == "drop":
        answer_rows = answer_rows[np.isin(theirs[key][answer_rows], mine[key])]
    submission_rows = np.flatnonzero(np.isin(mine[key], theirs[key][answer_rows]))
    if len(answer_rows) == 1 and len(submission_rows) > 1 and options.missing_rows == "drop":
        answer_rows = np.repeat(answer_rows, len(submission_rows))
    else:
        mine_rows, other = match_rows(mine.take(submission_rows), theirs.take(answer_rows), rows.ids, "id")
        submission_rows, answer_rows = submission_rows[mine_rows], answer_rows[other]
    y_pred = numbers(mine[value], value, finite=options.missing_rows == "refuse")[submission_rows]
    deviation = numbers(mine[confidence], confidence, finite=False)[submission_rows]
    return _Predictions(answer_rows, y_pred, np.where(np.isnan(deviation), 0.0, deviation))


def _score(rows: Rows, predictions: _Predictions, options: LaplaceOptions) -> float:
    (truth, *_) = rows.truth
    return laplace_log_likelihood(
        numbers(rows.answers[truth], truth, finite=False)[predictions.answer_rows],
        predictions.values,
        predictions.deviations,
        least_confidence=options.least_confidence,
        largest_error=options.largest_error,
    )


GRADER = define(
    "laplace-log-likelihood",
    "Laplace log likelihood",
    "maximize",
    _read,
    _score,
    options=LaplaceOptions,
    perfect=float(-np.log(np.sqrt(2) * 70)),
    matching=False,
    drop=_drop,
)
