"""Levenshtein distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux_tables import Array, Cells, Rows, define

from mleredux_graders.text.cells import TextOptions, read_texts, true_texts

_AT_ONCE = 1 << 13
"""Number of pairs converted to Python strings at a time: the conversion dominates if memory has to grow."""


class LevenshteinOptions(TextOptions):
    """Options of the Levenshtein distance."""

    tokens: Literal["characters", "integers"] = "characters"
    """Units to insert, delete and replace: Unicode characters, or integers separated by white space."""
    average: Literal["rows", "pooled"] = "rows"
    """Mean distance over rows, or the sum of distances divided by the total length of true sequences."""


def levenshtein(y_true: Sequence[str] | Array, y_pred: Sequence[str] | Array) -> Array:
    """Return the minimum number of insertions, deletions and replacements (Levenshtein 1966) for each pair.

    Args:
        y_true: Texts.
        y_pred: Texts, as many as in `y_true`.

    Returns:
        Integers, shape (rows,).
    """
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    if not len(y_true):
        return np.zeros(0)
    distances: Array = cpdist(list(y_true), list(y_pred), scorer=Levenshtein.distance, dtype=np.int64)
    return distances


def _as_numbers(cells: Sequence[str], name: str) -> list[list[int]]:
    """Return sequences of integers.

    Raises:
        InvalidSubmission: A cell is not such a sequence.
    """
    result = []
    for row, cell in enumerate(cells, start=1):
        try:
            pieces = [int(piece) for piece in cell.split()]
        except ValueError:
            pieces = []
        if not pieces:
            raise InvalidSubmission(f"Column {name!r} must contain integers separated by spaces; row {row} does not.")
        result.append(pieces)
    return result


def _as_characters(sequences: list[list[int]], codes: dict[int, str], other: str | None = None) -> list[str]:
    """Encode sequences as text, with one character per distinct number.

    Args:
        codes: Characters by number; new numbers are added.
        other: A common character for all new numbers instead, since numbers absent from true sequences never match.
    """
    return [  # beyond the surrogates, which are not characters
        "".join(codes.setdefault(piece, other or chr(0x10000 + len(codes))) for piece in pieces) for pieces in sequences
    ]


def _read(rows: Rows, options: LevenshteinOptions) -> Cells | list[list[int]]:
    predicted = read_texts(rows, options)
    return _as_numbers(predicted.strings(), rows.targets[0]) if options.tokens == "integers" else predicted


def _score(rows: Rows, predicted: Cells | list[list[int]], options: LevenshteinOptions) -> float:
    true, codes = true_texts(rows, options), dict[int, str]()
    distances, lengths = np.empty((2, len(rows)))
    everything = (
        None if isinstance(predicted, Cells) else _as_characters(_as_numbers(true.strings(), rows.truth[0]), codes)
    )
    for start in range(0, len(rows), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        y_true = true.strings(part) if everything is None else everything[part]
        y_pred = (
            predicted.strings(part)
            if isinstance(predicted, Cells)
            else _as_characters(predicted[part], codes, chr(0x10FFFF))
        )
        distances[part], lengths[part] = levenshtein(y_true, y_pred), [len(text) for text in y_true]
    if options.average == "pooled":
        return float(distances.sum() / lengths.sum())
    return float(np.average(distances, weights=rows.weight))


GRADER = define(
    "levenshtein", "Levenshtein distance", "minimize", _read, _score, options=LevenshteinOptions, perfect=0.0
)
