"""F1 for sets of labels: micro, or the mean over rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
from mleredux_tables import Array, Cells, Missing, Options, Rows, Utf8, define, in_blocks, predicted_cells, true_cells

from mleredux_graders.classification.confusion import ratio
from mleredux_graders.pieces import overlap, split_words

Average = Literal["micro", "samples"]
_NONE: Array = np.empty(0, dtype=np.int64)


class MultilabelOptions(Options):
    """Options of F1 for sets of labels."""

    missing: Missing = "refuse"
    """`blank`: a missing cell is a row without labels."""
    unknown: bool = False
    """Whether predicted labels that never occur in the answers count as false positives instead of being ignored."""
    average: Average = "micro"
    """`micro`: counts of all rows are pooled; `samples`: the mean of each row's F1."""


def f1_multilabel(rows: Iterable[tuple[Utf8, Utf8]], *, unknown: bool = False, average: Average = "micro") -> float:
    """Return 2 TP / (2 TP + FP + FN), over all pairs of row and label or row by row.

    Args:
        rows: Blocks of true and predicted texts of labels separated by white space; repeats within a row count once.
        unknown: Whether predicted labels that never occur in the truth are false positives.
        average: `micro` pools the counts of all rows, and is 0 if there are no labels; `samples` is the mean over rows,
            where a row without labels on both sides counts as 1.

    Returns:
        0 to 1; NaN for the mean over no rows.
    """
    count = 0
    hits, wanted, surplus = [_NONE], [_NONE], [_NONE]
    labels, missed = [Utf8.of_cells([])], [Utf8.of_cells([])]
    for texts in rows:
        y_true, y_pred = (split_words(side) for side in texts)
        common = overlap(y_true, y_pred)
        wrong = common.predicted[~common.hits]
        hits.append(y_pred.rows[common.predicted[common.hits]] + count)
        wanted.append(y_true.rows[common.true] + count)
        surplus.append(y_pred.rows[wrong] + count)
        missed.append(y_pred.texts.subset(wrong))
        labels.append(y_true.texts.subset(np.flatnonzero(y_true.texts.first_equals() == np.arange(len(y_true.texts)))))
        count += len(y_true.firsts)
    counted = np.concatenate(surplus)
    if not unknown:
        counted = counted[Utf8.joined(missed).among(Utf8.joined(labels))]
    right, all_true = np.concatenate(hits), np.concatenate(wanted)
    if average == "micro":
        return float(ratio(2 * len(right), len(all_true) + len(right) + len(counted)))
    tp, true, fp = (np.bincount(part, minlength=count) for part in (right, all_true, counted))
    return float(np.where(true + fp, ratio(2 * tp, true + tp + fp), 1.0).mean())


def _read(rows: Rows, options: MultilabelOptions) -> Cells:
    return predicted_cells(rows, missing=options.missing, numbers="refuse")


def _score(rows: Rows, y_pred: Cells, options: MultilabelOptions) -> float:
    blocks = ((true, predicted) for _, true, predicted in in_blocks(true_cells(rows), y_pred))
    return f1_multilabel(blocks, unknown=options.unknown, average=options.average)


GRADER = define(
    "f1-multilabel", "F1 of sets of labels", "maximize", _read, _score, options=MultilabelOptions, perfect=1.0
)
