"""Levenshtein distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux.plugin.grader import Array, Rows, define

from mleredux_graders.text.cells import TextOptions, matched_texts

_AT_ONCE = 1 << 13
"""Pairs of texts that are made into Python's own, which takes most of the time where memory has to grow for them."""


class LevenshteinOptions(TextOptions):
    """What the Levenshtein distance takes."""

    tokens: Literal["characters", "integers"] = "characters"
    """What is inserted, deleted and replaced: Unicode characters, or whole numbers with white space between."""
    average: Literal["rows", "pooled"] = "rows"
    """Mean distance over rows; or all distances divided by the length of all true sequences."""


def levenshtein(y_true: Sequence[str] | Array, y_pred: Sequence[str] | Array) -> Array:
    """Least number of characters to insert, delete or replace (Levenshtein 1966), of each pair.

    Args:
        y_true: Texts.
        y_pred: As many texts.

    Returns:
        Whole numbers, shape (rows,).
    """
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    if not len(y_true):
        return np.zeros(0)
    distances: Array = cpdist(list(y_true), list(y_pred), scorer=Levenshtein.distance, dtype=np.int64)
    return distances


def _as_characters(
    cells: Sequence[str], name: str, codes: dict[int, str], other: str | None = None, before: int = 0
) -> list[str]:
    """Sequences of whole numbers as text, one character per distinct number.

    Args:
        codes: Characters by number; new numbers are added.
        other: The character of all new numbers instead. (Those that no true sequence has never match anything.)
        before: Cells that come before these.
    """
    result = []
    for row, cell in enumerate(cells, start=before + 1):
        try:
            pieces = [int(piece) for piece in cell.split()]
        except ValueError:
            pieces = []
        if not pieces:
            raise InvalidSubmission(f"Column {name!r} must hold whole numbers with blanks between; row {row} does not.")
        # Beyond the surrogates, which are no characters of their own.
        result.append("".join(codes.setdefault(piece, other or chr(0x10000 + len(codes))) for piece in pieces))
    return result


def _score(rows: Rows, options: LevenshteinOptions) -> float:
    true, predicted = matched_texts(rows, options)
    codes: dict[int, str] = {}
    if options.tokens == "integers":
        everything = _as_characters(true.strings(), rows.truth[0], codes)
    distances, lengths = np.empty((2, len(rows)))
    for start in range(0, len(rows), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        y_true, y_pred = true.strings(part), predicted.strings(part)
        if options.tokens == "integers":
            y_true, y_pred = everything[part], _as_characters(y_pred, rows.targets[0], codes, chr(0x10FFFF), start)
        distances[part], lengths[part] = levenshtein(y_true, y_pred), [len(text) for text in y_true]
    if options.average == "pooled":
        return float(distances.sum() / lengths.sum())
    return float(np.average(distances, weights=rows.weight))


GRADER = define("levenshtein", "Levenshtein distance", "minimize", _score, options=LevenshteinOptions, perfect=0.0)
