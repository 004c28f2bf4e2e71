"""Metrics on text: exact match, Levenshtein distance, and Jaccard similarity of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux_tables import (
    Array,
    Cells,
    Missing,
    Numbers,
    Options,
    Rows,
    Utf8,
    in_blocks,
    predicted_cells,
    true_cells,
)

from mleredux_graders.directions import distance, similarity
from mleredux_graders.pieces import overlap, split_words


class TextOptions(Options):
    """Options of the metrics on text."""

    missing: Missing = "refuse"
    """The meaning of a missing cell, in submissions and in answers."""
    numbers: Numbers = "refuse"
    """Whether a column that is read as numbers is rejected or converted to text."""


def read_texts(rows: Rows, options: TextOptions) -> Cells:
    """Return the predicted texts.

    Raises:
        InvalidSubmission: A cell is missing, or the column was read as numbers.
    """
    return predicted_cells(rows, missing=options.missing, numbers=options.numbers)


def true_texts(rows: Rows, options: TextOptions) -> Cells:
    """Return the true texts."""
    return true_cells(rows, missing="nan" if options.missing == "nan" else "blank")


def _exact_match(rows: Rows, y_pred: Cells, options: TextOptions) -> float:
    return float(np.average(true_texts(rows, options).equal(y_pred), weights=rows.weight))


EXACT_MATCH = similarity("exact-match", "Exact match", read_texts, _exact_match, options=TextOptions)


_AT_ONCE = 1 << 13
"""Number of pairs converted to Python strings at a time: the conversion dominates if memory has to grow."""


class LevenshteinOptions(TextOptions):
    """Options of the Levenshtein distance."""

    tokens: Literal["characters", "integers"] = "characters"
    """Units to insert, delete and replace: Unicode characters, or integers separated by whitespace."""
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


def _levenshtein(rows: Rows, predicted: Cells | list[list[int]], options: LevenshteinOptions) -> float:
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


LEVENSHTEIN = distance("levenshtein", "Levenshtein distance", _read, _levenshtein, options=LevenshteinOptions)


class JaccardOptions(TextOptions):
    """Options of the metric."""

    both_empty: Literal["one", "zero", "refuse"] = "one"
    """Score of a row if neither truth nor prediction has any words."""


def word_jaccard(y_true: Utf8, y_pred: Utf8) -> Array:
    """Return common distinct words divided by all distinct words of both texts (Jaccard 1901), row by row.

    Words are lower-cased and split at whitespace; punctuation stays part of them.

    Returns:
        0 to 1; NaN if neither has any words, shape (rows,).
    """
    true, predicted = (split_words(texts.lowered()) for texts in (y_true, y_pred))
    pairs = overlap(true, predicted)
    words, wanted = predicted.rows[pairs.predicted], true.rows[pairs.true]
    common, distinct_given, distinct_wanted = (
        np.bincount(rows, minlength=len(y_true)) for rows in (words[pairs.hits], words, wanted)
    )
    union = distinct_wanted + distinct_given - common
    return np.where(union > 0, common / np.maximum(union, 1), np.nan)


def _word_jaccard(rows: Rows, predicted: Cells, options: JaccardOptions) -> float:
    scores = np.empty(len(rows))
    for here, y_true, y_pred in in_blocks(true_texts(rows, options), predicted):
        scores[here] = word_jaccard(y_true, y_pred)
    empty = np.isnan(scores)
    if options.both_empty == "refuse" and empty.any():
        raise InvalidSubmission(f"Column {rows.targets[0]!r} must have a word in every row; some rows have none.")
    scores[empty] = 1.0 if options.both_empty == "one" else 0.0
    return float(np.average(scores, weights=rows.weight))


WORD_JACCARD = similarity(
    "word-jaccard", "Word-level Jaccard similarity", read_texts, _word_jaccard, options=JaccardOptions
)
