"""Jaccard similarity of the words of two texts."""

from __future__ import annotations

from typing import Literal

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux_tables import Array, Cells, Rows, Utf8, define, in_blocks

from mleredux_graders.pieces import overlap, split_words
from mleredux_graders.text.cells import TextOptions, read_texts, true_texts


class JaccardOptions(TextOptions):
    """Options of the metric."""

    both_empty: Literal["one", "zero", "refuse"] = "one"
    """Score of a row if neither truth nor prediction has any words."""


def word_jaccard(y_true: Utf8, y_pred: Utf8) -> Array:
    """Return common distinct words divided by all distinct words of both texts (Jaccard 1901), row by row.

    Words are lower-cased and split at white space; punctuation stays part of them.

    Returns:
        0 to 1; NaN if neither has any words, shape (rows,).
    """
    true, predicted = (split_words(texts.lowered()) for texts in (y_true, y_pred))
    found = overlap(true, predicted)
    words, wanted = predicted.rows[found.predicted], true.rows[found.true]
    common, distinct_given, distinct_wanted = (
        np.bincount(rows, minlength=len(y_true)) for rows in (words[found.hits], words, wanted)
    )
    union = distinct_wanted + distinct_given - common
    return np.where(union > 0, common / np.maximum(union, 1), np.nan)


def _score(rows: Rows, predicted: Cells, options: JaccardOptions) -> float:
    scores = np.empty(len(rows))
    for here, y_true, y_pred in in_blocks(true_texts(rows, options), predicted):
        scores[here] = word_jaccard(y_true, y_pred)
    empty = np.isnan(scores)
    if options.both_empty == "refuse" and empty.any():
        raise InvalidSubmission(f"Column {rows.targets[0]!r} must have a word in every row; some rows have none.")
    scores[empty] = 1.0 if options.both_empty == "one" else 0.0
    return float(np.average(scores, weights=rows.weight))


GRADER = define(
    "word-jaccard", "Word-level Jaccard similarity", "maximize", read_texts, _score, options=JaccardOptions, perfect=1.0
)
