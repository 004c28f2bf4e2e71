"""Jaccard similarity of the words of two texts."""

from __future__ import annotations

from typing import Literal

import numpy as np
from mleredux.errors import InvalidSubmission

from mleredux_graders.frame import Rows, define
from mleredux_graders.text.cells import TextOptions, matched_texts


class JaccardOptions(TextOptions):
    """What it takes."""

    both_empty: Literal["one", "zero", "refuse"] = "one"
    """What a row counts where neither truth nor prediction has a word."""


def word_jaccard(y_true: str, y_pred: str) -> float:
    """Distinct words in common, divided by the distinct words of both (Jaccard 1901).

    Words are lower-cased and split at white space; punctuation stays part of them.

    Returns:
        0 to 1; NaN where neither has a word.
    """
    true, predicted = set(y_true.lower().split()), set(y_pred.lower().split())
    common = len(true & predicted)
    union = len(true) + len(predicted) - common
    return common / union if union else float("nan")


def _score(rows: Rows, options: JaccardOptions) -> float:
    pairs = zip(*matched_texts(rows, options), strict=True)
    scores = np.array([word_jaccard(y_true, y_pred) for y_true, y_pred in pairs], dtype=np.float64)
    empty = np.isnan(scores)
    if options.both_empty == "refuse" and empty.any():
        raise InvalidSubmission(f"Column {rows.targets[0]!r} must have a word in every row; some rows have none.")
    scores[empty] = 1.0 if options.both_empty == "one" else 0.0
    return float(np.average(scores, weights=rows.weight))


GRADER = define(
    "word-jaccard", "Word-level Jaccard similarity", "maximize", _score, options=JaccardOptions, perfect=1.0
)
