"""Validated labels, shared by the metrics on labels, and their confusion matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux.plugin.grader import Grader
from mleredux.plugin.task import Direction
from mleredux_tables import Array, Options, Rows, define, integers, is_missing, number_labels, refuse, text_labels


class LabelOptions(Options):
    """Options of the metrics on labels."""

    labels: Literal["any", "integer", "first-integer"] = "any"
    """`integer`: truncated to integers; `first-integer`: the first of several numbers in a text counts."""
    missing: Literal["refuse", "blank", "wrong"] = "refuse"
    """`blank`: a missing label is the empty string; `wrong`: the same, but a column without any label is rejected."""


LabelsT = TypeVar("LabelsT", bound=LabelOptions)


def read_labels(rows: Rows, options: LabelOptions) -> Array:
    """Return predicted labels, text or numbers like the true ones, shape (rows,).

    Raises:
        InvalidSubmission: A label is missing, fractional, or of a different kind than the true ones.
    """
    (target,), (truth,) = rows.targets, rows.truth
    y_pred = rows.predicted(target)
    if options.labels == "integer":
        y_pred = integers(y_pred, target)
    elif options.labels == "first-integer":
        y_pred = _first_integer(y_pred, target)
    text = rows.answers[truth].dtype.kind == "O" and options.labels == "any"
    return text_labels(y_pred, target, options.missing) if text else number_labels(y_pred, target)


def matched_labels(rows: Rows, y_pred: Array, options: LabelOptions) -> tuple[Array, Array]:
    """Return labels as integers from 0, by position in the sorted labels of truth and prediction together.

    Args:
        y_pred: The result of `read_labels`.

    Returns:
        y_true, y_pred: int64, shape (rows,) each.
    """
    (truth,) = rows.truth
    y_true = rows.true(truth)
    if options.labels == "integer":
        y_true = integers(y_true, truth)
    return encode(np.where(is_missing(y_true), "", y_true) if y_true.dtype.kind == "O" else y_true, y_pred)


def label_grader(
    id: str,
    title: str,
    metric: Callable[..., float],
    *,
    options: type[LabelsT],
    direction: Direction = "maximize",
    perfect: float = 1.0,
    chosen: Callable[[LabelsT], dict[str, Any]] = lambda options: {},
) -> Grader:
    """Return a grader for a metric on encoded labels.

    Args:
        metric: `metric(y_true, y_pred, sample_weight=…, **chosen(options))`.
    """

    def score(rows: Rows, y_pred: Array, settings: LabelsT) -> float:
        return metric(*matched_labels(rows, y_pred, settings), sample_weight=rows.weight, **chosen(settings))

    return define(id, title, direction, read_labels, score, options=options, perfect=perfect)


def encode(y_true: Array, y_pred: Array) -> tuple[Array, Array]:
    """Encode two arrays of labels as positions in the sorted list of all labels."""
    import pandas as pd

    codes, _ = pd.factorize(np.concatenate([y_true, y_pred]), sort=True)
    return codes[: len(y_true)], codes[len(y_true) :]


def _first_integer(values: Array, name: str) -> Array:
    message = f"Column {name!r} must begin with a whole number in every row; row {{row}} does not."
    if values.dtype.kind == "f":
        raise InvalidSubmission(
            f"Column {name!r} must contain whole numbers in every row; it is read as fractions, "
            "so a cell is empty or has a decimal point."
        )
    if values.dtype.kind != "O":
        return values.astype(np.int64)
    first = [value.split(maxsplit=1)[:1] if isinstance(value, str) else [] for value in values]
    try:
        return np.array([int(pieces[0]) for pieces in first], dtype=np.int64)
    except (ValueError, IndexError, OverflowError):
        good = [bool(pieces) and pieces[0].lstrip("+-").isdigit() for pieces in first]
        refuse(~np.array(good, dtype=bool), message)
        raise InvalidSubmission(message.format(row="one")) from None


def confusion(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> Array:
    """Return the summed row weights by true (first axis) and predicted label.

    Args:
        y_true: Labels as integers from 0, shape (rows,).
        y_pred: The same.

    Returns:
        float64, shape (labels, labels).
    """
    size = int(max(y_true.max(initial=-1), y_pred.max(initial=-1))) + 1
    counts = np.bincount(y_true * size + y_pred, weights=sample_weight, minlength=size * size)
    return counts.reshape(size, size).astype(np.float64)


def label_counts(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> tuple[Array, Array, Array]:
    """Return, per label, the numbers of correctly predicted, true, and predicted rows.

    No matrix is built, so that tens of thousands of labels are not a problem.

    Returns:
        Three float64 arrays, shape (labels,).
    """
    size = int(max(y_true.max(initial=-1), y_pred.max(initial=-1))) + 1
    weight = np.ones(len(y_true)) if sample_weight is None else sample_weight
    hits = np.bincount(y_true, weights=weight * (y_true == y_pred), minlength=size)
    true = np.bincount(y_true, weights=weight, minlength=size)
    predicted = np.bincount(y_pred, weights=weight, minlength=size)
    return hits, true, predicted


def ratio(numerator: Array | float, denominator: Array | float) -> Array:
    """Return a quotient; 0 if the denominator is 0."""
    top, bottom = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    return np.divide(top, bottom, out=np.zeros(np.broadcast(top, bottom).shape), where=bottom != 0)
