"""Micro F1 of sets of labels."""

from __future__ import annotations

import numpy as np

from mleredux_graders.classification.confusion import ratio
from mleredux_graders.frame import Missing, Options, Rows, define, predicted_cells, true_cells
from mleredux_graders.frame.pieces import Pieces, overlap, split_words


class MultilabelOptions(Options):
    """What F1 of sets of labels takes."""

    missing: Missing = "refuse"
    """`blank`: a missing cell is a row without labels."""
    unknown: bool = False
    """Whether predicted labels that never occur in the answers are false positives, rather than ignored."""


def f1_multilabel(y_true: Pieces, y_pred: Pieces, *, unknown: bool = False) -> float:
    """2 TP / (2 TP + FP + FN) over all pairs of row and label; 0 without any pair.

    Args:
        y_true: Labels; repeats within a row count once.
        y_pred: The same.
        unknown: Whether predicted labels that never occur in the truth are false positives.

    Returns:
        0 to 1.
    """
    found = overlap(y_true, y_pred)
    hits = int(np.count_nonzero(found.hits))
    missed = found.predicted[~found.hits]
    if not unknown:
        missed = missed[y_pred.texts.at(missed).among(y_true.texts.at(found.true))]
    return float(ratio(2 * hits, len(found.true) + hits + len(missed)))


def _score(rows: Rows, options: MultilabelOptions) -> float:
    y_pred = predicted_cells(rows, missing=options.missing, numbers="refuse").pieces(split_words)
    return f1_multilabel(true_cells(rows).pieces(split_words), y_pred, unknown=options.unknown)


GRADER = define(
    "f1-multilabel", "Micro F1 of sets of labels", "maximize", _score, options=MultilabelOptions, perfect=1.0
)
