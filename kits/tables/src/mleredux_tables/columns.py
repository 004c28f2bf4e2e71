"""Convert columns to arrays, or reject them with one sentence about what to fix."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from mleredux.errors import InvalidSubmission
from mleredux.models.formats import plain

from mleredux_tables.table import is_missing

Array = npt.NDArray[Any]
"""A NumPy array of any type and shape."""

Missing = Literal["refuse", "blank", "nan"]
"""How a missing cell of text is treated: it is rejected, or counts as the empty string or as the text `nan`."""

Numbers = Literal["refuse", "text"]
"""Whether a column that was read as numbers is rejected, or converted to text as Python prints it (`5`, `0.5`,
`True`).
"""


EMPTY = "Column {name!r} must have text in every row; row {{row}} is empty."


def numbers(values: Array, name: str, *, finite: bool = True, booleans: bool = True) -> Array:
    """Return a column of numbers; True and False count as 1 and 0.

    Args:
        values: The column, shape (rows,).
        name: The name of the column for error messages.
        finite: Whether missing and infinite cells are rejected; otherwise they remain NaN and ±inf.
        booleans: Whether a column of True and False is accepted.

    Returns:
        float64, shape (rows,).

    Raises:
        InvalidSubmission: A cell is not a number (or not finite).
    """
    if values.dtype.kind == "b" and not booleans:
        raise InvalidSubmission(f"Column {name!r} must contain numbers, but its values are read as true and false.")
    try:
        if values.dtype.kind == "O" and not all(map(_readable, values)):
            raise ValueError
        result = values.astype(np.float64)
    except (ValueError, TypeError, OverflowError):
        row = _first_text(values)
        raise InvalidSubmission(f"Column {name!r} must contain numbers only; row {row} does not.") from None
    if finite:
        refuse(
            ~np.isfinite(result), f"Column {name!r} must contain finite numbers; row {{row}} is missing or infinite."
        )
    return result


def within(values: Array, name: str, bounds: tuple[float | None, float | None] | None) -> Array:
    """Return the same numbers, or raise an error if some are missing or outside the (inclusive) bounds.

    Args:
        values: Numbers, shape (rows,).
        name: The name of the column for error messages.
        bounds: The smallest and the largest permitted number, None for no bound.

    Raises:
        InvalidSubmission: A number is missing or outside the bounds.
    """
    low, high = bounds or (None, None)
    if low is not None:
        refuse(~(values >= low), f"Column {name!r} must be {plain(low)} or more in every row; row {{row}} is not.")
    if high is not None:
        refuse(~(values <= high), f"Column {name!r} must be {plain(high)} or less in every row; row {{row}} is not.")
    return values


def texts(values: Array, name: str, *, missing: Missing = "refuse", numbers: Numbers = "refuse") -> Array:
    """Return a column of text.

    Args:
        values: The column, shape (rows,).
        name: The name of the column for error messages.
        missing: How missing cells are treated. A column whose cells are all missing counts as text.
        numbers: How to treat a column that was read as numbers or booleans.

    Returns:
        An object array of str, shape (rows,).

    Raises:
        InvalidSubmission: A cell is missing, or the column was read as numbers.
    """
    gaps = is_missing(values)
    if missing == "refuse":
        refuse(gaps, EMPTY.format(name=name))
    if values.dtype.kind != "O":
        if numbers == "refuse" and not gaps.all():
            raise InvalidSubmission(f"Column {name!r} must contain text, but its cells are read as numbers.")
        values = values.astype(object)
    if not only_text(values):
        values = np.array([None, *(value if type(value) is str else str(value) for value in values)], dtype=object)[1:]
    if gaps.any():
        values = values.copy()
        values[gaps] = "nan" if missing == "nan" else ""
    return values


def only_text(values: Array) -> bool:
    """Return whether all cells of an object array that are not missing are text."""
    import pandas as pd

    return pd.api.types.infer_dtype(values, skipna=True) in ("string", "empty")


def text_labels(values: Array, name: str, missing: str = "refuse") -> Array:
    """Return a column of labels that are text.

    Args:
        values: The column, shape (rows,).
        name: The name of the column for error messages.
        missing: `blank`: a missing label is the empty string; `wrong`: the same, but not all may be missing.

    Raises:
        InvalidSubmission: A label is missing, or is not text.
    """
    gaps = is_missing(values)
    if missing == "refuse" or (missing == "wrong" and len(values) and gaps.all()):
        refuse(gaps, f"Column {name!r} must have a label in every row; row {{row}} is empty.")
    if values.dtype.kind != "O" and not gaps.all():
        raise InvalidSubmission(
            f"Column {name!r} must contain labels like the sample's, but its cells are read as numbers."
        )
    filled = np.empty(len(values), dtype=object)
    filled[:] = values
    filled[gaps] = ""
    if only_text(filled):
        return filled
    refuse(
        np.array([type(value) is not str for value in filled], dtype=bool),
        f"Column {name!r} must contain labels like the sample's; row {{row}} does not.",
    )
    return filled


def number_labels(values: Array, name: str) -> Array:
    """Return a column of labels that are integers or booleans.

    Args:
        values: The column, shape (rows,).
        name: The name of the column for error messages.

    Raises:
        InvalidSubmission: A label is missing, text, a fraction, or too large for 64 bits.
    """
    if values.dtype.kind == "O":
        gaps = is_missing(values)
        if gaps.any():
            refuse(gaps, f"Column {name!r} must have a label in every row; row {{row}} is empty.")
        raise InvalidSubmission(f"Column {name!r} must contain labels like the sample's, but some cells are text.")
    if values.dtype.kind == "f":
        refuse(
            ~np.isfinite(values), f"Column {name!r} must have a label in every row; row {{row}} is missing or infinite."
        )
        refuse(values != np.trunc(values), f"Column {name!r} must contain labels; row {{row}} is a fraction.")
    _refuse_huge(values, name)
    return values


def integers(values: Array, name: str) -> Array:
    """Return a column truncated to integers, as Python's `int` does per cell (`3.9` and `"3"` are 3).

    Args:
        values: The column, shape (rows,).
        name: The name of the column for error messages.

    Raises:
        InvalidSubmission: A cell is missing, infinite or not a number.
    """
    if values.dtype.kind == "O":
        try:
            if not all(map(_readable, values)):
                raise ValueError
            return np.array([int(value) for value in values], dtype=np.int64)
        except (ValueError, TypeError, OverflowError):
            row = _first_text(values)
            raise InvalidSubmission(f"Column {name!r} must contain whole numbers only; row {row} does not.") from None
    refuse(~np.isfinite(values), f"Column {name!r} must contain whole numbers only; row {{row}} does not.")
    _refuse_huge(values, name)
    return values if values.dtype.kind in "iu" else np.trunc(values)


def _refuse_huge(values: Array, name: str) -> None:
    """Reject labels that do not fit into 64 bits.

    Args:
        values: Finite numbers, shape (rows,).
    """
    if values.dtype.kind in "uf":
        refuse(
            (values >= 2.0**63) | (values < -(2.0**63)),
            f"Column {name!r} must contain labels below 2^63; row {{row}} does not.",
        )


def refuse(faulty: Array, message: str) -> None:
    """Reject the submission if any row is faulty.

    Args:
        faulty: Booleans, shape (rows,) or (rows, columns).
        message: A sentence with `{row}` for the number of the first faulty row, counted from 1 below the header.

    Raises:
        InvalidSubmission: A row is faulty.
    """
    rows = faulty if faulty.ndim == 1 else faulty.any(axis=1)
    if rows.any():
        raise InvalidSubmission(message.format(row=int(np.argmax(rows)) + 1))


def _readable(value: object) -> bool:
    """Return False for text that Python, but no CSV reader, parses as a number: `1_000`, non-ASCII digits, `NAN`."""
    return type(value) is not str or ("_" not in value and value.isascii() and "nan" not in value.lower())


def _first_text(values: Array) -> int:
    """Return the first row, counted from 1, that can't be converted to a finite number."""
    for row, value in enumerate(values, start=1):
        if not _readable(value):
            return row
        try:
            if not np.isfinite(float(value)):
                return row
        except (ValueError, TypeError, OverflowError):
            return row
    return len(values)
