"""Micro F1 of sets of labels."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mleredux_graders.classification.confusion import ratio
from mleredux_graders.frame import Missing, Options, Rows, define, in_blocks, predicted_cells, true_cells
from mleredux_graders.frame.pieces import overlap, split_words
from mleredux_graders.frame.utf8 import Utf8


class MultilabelOptions(Options):
    """What F1 of sets of labels takes."""

    missing: Missing = "refuse"
    """`blank`: a missing cell is a row without labels."""
    unknown: bool = False
    """Whether predicted labels that never occur in the answers are false positives, rather than ignored."""


def f1_multilabel(rows: Iterable[tuple[Utf8, Utf8]], *, unknown: bool = False) -> float:
    """2 TP / (2 TP + FP + FN) over all pairs of row and label; 0 without any pair.

    Args:
        rows: Blocks of true and predicted texts of labels with white space between; repeats within a row count once.
        unknown: Whether predicted labels that never occur in the truth are false positives.

    Returns:
        0 to 1.
    """
    hits = wanted = 0
    labels, missed = [Utf8.of_cells([])], [Utf8.of_cells([])]
    for texts in rows:
        y_true, y_pred = (split_words(side) for side in texts)
        found = overlap(y_true, y_pred)
        hits += int(np.count_nonzero(found.hits))
        wanted += len(found.true)
        missed.append(y_pred.texts.subset(found.predicted[~found.hits]))
        labels.append(y_true.texts.subset(np.flatnonzero(y_true.texts.first_equals() == np.arange(len(y_true.texts)))))
    wrong = Utf8.joined(missed)
    false = len(wrong) if unknown else int(np.count_nonzero(wrong.among(Utf8.joined(labels))))
    return float(ratio(2 * hits, wanted + hits + false))


def _score(rows: Rows, options: MultilabelOptions) -> float:
    y_pred = predicted_cells(rows, missing=options.missing, numbers="refuse")
    blocks = ((true, predicted) for _, true, predicted in in_blocks(true_cells(rows), y_pred))
    return f1_multilabel(blocks, unknown=options.unknown)


GRADER = define(
    "f1-multilabel", "Micro F1 of sets of labels", "maximize", _score, options=MultilabelOptions, perfect=1.0
)
