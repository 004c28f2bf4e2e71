"""Micro F1 of sets of labels."""

from __future__ import annotations

import numpy as np

from mleredux_graders.classification.confusion import ratio
from mleredux_graders.frame import Array, Options, Rows, define, texts
from mleredux_graders.frame.arrays import distinct
from mleredux_graders.frame.columns import Missing


class MultilabelOptions(Options):
    """What F1 of sets of labels takes."""

    missing: Missing = "refuse"
    """`blank`: a missing cell is a row without labels."""
    unknown: bool = False
    """Whether predicted labels that never occur in the answers are false positives, rather than ignored."""


def f1_multilabel(y_true: Array, y_pred: Array, *, unknown: bool = False) -> float:
    """2 TP / (2 TP + FP + FN) over all pairs of row and label; 0 without any pair.

    Args:
        y_true: Texts of labels with white space between, shape (rows,).
        y_pred: The same; repeats within a row count once.
        unknown: Whether predicted labels that never occur in the truth are false positives.

    Returns:
        0 to 1.
    """
    true, known = _pairs(y_true, {})
    size = len(known)
    predicted, _ = _pairs(y_pred, known)
    if not unknown:
        predicted = predicted[predicted[:, 1] < size]
    width = max(len(known), 1)
    wanted, given = distinct(true[:, 0] * width + true[:, 1]), distinct(predicted[:, 0] * width + predicted[:, 1])
    hits = len(np.intersect1d(wanted, given, assume_unique=True))
    return float(ratio(2 * hits, len(wanted) + len(given)))


def _pairs(cells: Array, known: dict[str, int]) -> tuple[Array, dict[str, int]]:
    """(row, number of label) of each label, shape (labels, 2); new labels are added to `known`."""
    pieces = [cell.split() for cell in cells]
    rows = np.repeat(np.arange(len(cells)), [len(labels) for labels in pieces])
    numbers = [known.setdefault(label, len(known)) for labels in pieces for label in labels]
    return np.stack([rows, np.array(numbers, dtype=np.int64)], axis=1), known


def _score(rows: Rows, options: MultilabelOptions) -> float:
    (target,), (truth,) = rows.targets, rows.truth
    y_pred = texts(rows.predicted(target), target, missing=options.missing)
    y_true = texts(rows.true(truth), truth, missing="blank", numbers="text")
    return f1_multilabel(y_true, y_pred, unknown=options.unknown)


GRADER = define(
    "f1-multilabel", "Micro F1 of sets of labels", "maximize", _score, options=MultilabelOptions, perfect=1.0
)
