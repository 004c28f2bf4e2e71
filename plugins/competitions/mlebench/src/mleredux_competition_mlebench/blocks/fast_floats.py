"""Floats as parsed by default by pandas up to 3.0: fast, but inexact in the last digit of long numbers.

The published files of a few competitions were written with that parser, so their bytes depend on it. Newer pandas
versions do not include it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

_MAX_DIGITS = 17


def fast_floats(cells: Iterable[str]) -> npt.NDArray[np.float64]:
    """Parse decimal texts as floats with the algorithm of pandas' `precise_xstrtod`.

    The first 17 digits are accumulated as a float (`value * 10 + digit`), and the result is multiplied or divided once
    by a power of ten; each step rounds.

    Args:
        cells: Texts such as `-122.0841234567890123` or `1.5e-3`; empty ones are missing.
    """
    import numpy as np

    text = np.asarray(list(cells), dtype="S")
    grid = text.view(np.uint8).reshape(len(text), -1) if len(text) else np.zeros((0, 0), dtype=np.uint8)
    value, digits = np.zeros(len(text)), np.zeros(len(text), dtype=np.int64)
    exponent, written = np.zeros(len(text), dtype=np.int64), np.zeros(len(text), dtype=np.int64)
    fraction, scientific = np.zeros(len(text), dtype=bool), np.zeros(len(text), dtype=bool)
    negative_exponent = np.zeros(len(text), dtype=bool)
    for column in grid.T:
        digit = (column >= ord("0")) & (column <= ord("9"))
        number = column.astype(np.int64) - ord("0")
        mantissa = digit & ~scientific
        kept = mantissa & (digits < _MAX_DIGITS)
        value = np.where(kept, value * 10.0 + number, value)
        exponent += (mantissa & ~kept & ~fraction).astype(np.int64) - (kept & fraction)
        digits += kept
        written = np.where(digit & scientific, written * 10 + number, written)
        negative_exponent |= scientific & (column == ord("-"))
        fraction |= column == ord(".")
        scientific |= (column == ord("e")) | (column == ord("E"))
    exponent += np.where(negative_exponent, -written, written)
    powers = np.array([float(f"1e{n}") for n in range(309)])
    up, down = np.clip(exponent, 0, 308), np.clip(-exponent, 0, 308)
    value = np.where(exponent > 0, value * powers[up], value / powers[down])
    value = np.where([cell.startswith(b"-") for cell in text], -value, value)
    result: npt.NDArray[np.float64] = np.where(digits > 0, value, np.nan)
    return result


def read_fast(read: Any, columns: Iterable[str]) -> pd.DataFrame:
    """Read a raw table, parsing columns of long floats with `fast_floats`.

    Args:
        read: A function that reads the table, given `dtype` (`functools.partial(w.table, name)`).
        columns: The float columns.
    """
    columns = list(columns)
    table: pd.DataFrame = read(dtype=dict.fromkeys(columns, str))
    return table.assign(**{column: fast_floats(table[column].fillna("")) for column in columns})
