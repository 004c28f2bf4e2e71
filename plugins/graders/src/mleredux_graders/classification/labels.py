"""Labels: one class a row, as whole numbers, true and false, or text. Shared by the metrics on labels."""

from __future__ import annotations

from typing import Literal

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux.plugin.grader import Array, Options, Rows, integers, is_missing, only_text, refuse


class LabelOptions(Options):
    """What the metrics on labels take."""

    labels: Literal["any", "integer", "first-integer"] = "any"
    """`integer`: cut to whole numbers towards zero; `first-integer`: the first of several numbers in a text counts."""
    missing: Literal["refuse", "blank", "wrong"] = "refuse"
    """`blank`: a missing label is the empty text; `wrong`: the same, but a column without any label is refused."""


def matched_labels(rows: Rows, options: LabelOptions) -> tuple[Array, Array]:
    """Labels as whole numbers from 0, in the order of the sorted labels of truth and prediction together.

    Returns:
        y_true, y_pred: int64, shape (rows,) each.

    Raises:
        InvalidSubmission: A label is missing, fractional, or of another kind than the true ones.
    """
    (target,), (truth,) = rows.targets, rows.truth
    y_true, y_pred = rows.true(truth), rows.predicted(target)
    if options.labels == "integer":
        y_true, y_pred = integers(y_true, truth), integers(y_pred, target)
    elif options.labels == "first-integer":
        y_pred = _first_integer(y_pred, target)
    if y_true.dtype.kind == "O":
        y_pred = _text_labels(y_pred, target, options.missing)
        y_true = np.where(is_missing(y_true), "", y_true)
    else:
        y_pred = _whole_numbers(y_pred, target)
    return encode(y_true, y_pred)


def encode(y_true: Array, y_pred: Array) -> tuple[Array, Array]:
    """Two arrays of labels as positions in the sorted list of all of them."""
    import pandas as pd

    codes, _ = pd.factorize(np.concatenate([y_true, y_pred]), sort=True)
    return codes[: len(y_true)], codes[len(y_true) :]


def _text_labels(values: Array, name: str, missing: str) -> Array:
    gaps = is_missing(values)
    if missing == "refuse" or (missing == "wrong" and len(values) and gaps.all()):
        refuse(gaps, f"Column {name!r} must have a label in every row; row {{row}} is empty.")
    if values.dtype.kind != "O" and not gaps.all():
        raise InvalidSubmission(
            f"Column {name!r} must hold labels like the sample's, but its cells are read as numbers."
        )
    filled = np.empty(len(values), dtype=object)
    filled[:] = values
    filled[gaps] = ""
    if only_text(filled):
        return filled
    refuse(
        np.array([type(value) is not str for value in filled], dtype=bool),
        f"Column {name!r} must hold labels like the sample's; row {{row}} does not.",
    )
    return filled


def _whole_numbers(values: Array, name: str) -> Array:
    if values.dtype.kind == "O":
        gaps = is_missing(values)
        if gaps.any():
            refuse(gaps, f"Column {name!r} must have a label in every row; row {{row}} is empty.")
        raise InvalidSubmission(f"Column {name!r} must hold labels like the sample's, but some of its cells are text.")
    if values.dtype.kind == "f":
        refuse(
            ~np.isfinite(values), f"Column {name!r} must have a label in every row; row {{row}} is missing or infinite."
        )
        refuse(values != np.trunc(values), f"Column {name!r} must hold labels; row {{row}} is a fraction.")
    return values


def _first_integer(values: Array, name: str) -> Array:
    message = f"Column {name!r} must begin with a whole number in every row; row {{row}} does not."
    if values.dtype.kind == "f":
        raise InvalidSubmission(
            f"Column {name!r} must hold whole numbers in every row; it is read as fractions, "
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
