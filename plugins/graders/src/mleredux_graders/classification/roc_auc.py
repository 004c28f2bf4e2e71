"""Area under the ROC curve."""

from __future__ import annotations

from typing import Literal

import numpy as np
from mleredux.plugin.grader import Score
from mleredux_tables import Array, Rows, Table, define

from mleredux_graders.classification.scores import ScoreOptions, read_scores, true_indicators


class RocAucOptions(ScoreOptions):
    """Options of ROC AUC."""

    average: Literal["macro", "weighted"] = "macro"
    """Averaging over target columns; `weighted` uses the number of positive rows of each."""
    drop_negative_truth: bool = False
    """Whether rows whose truth sums to less than 0 are not scored (-1 marks them)."""


def roc_auc(y_true: Array, y_score: Array, *, sample_weight: Array | None = None) -> float:
    """Return the probability that a positive row scores higher than a negative one, with ties counted half.

    Args:
        y_true: 0 and 1, shape (rows,).
        y_score: Shape (rows,).
        sample_weight: Shape (rows,).

    Returns:
        0 to 1; NaN if one class is missing.
    """
    weight = np.ones(len(y_true)) if sample_weight is None else sample_weight
    order = np.argsort(y_score)
    scores, positive = y_score[order], (weight * y_true)[order]
    negative = weight[order] - positive
    ends = np.flatnonzero(np.append(scores[1:] != scores[:-1], True)) if len(scores) else np.empty(0, np.intp)
    positives, negatives = np.cumsum(positive)[ends], np.cumsum(negative)[ends]
    if not len(ends) or positives[-1] <= 0 or negatives[-1] <= 0:
        return float("nan")
    own = np.diff(positives, prepend=0)
    below = np.concatenate([[0], negatives[:-1]])
    return float((own * (below + np.diff(negatives, prepend=0) / 2)).sum() / (positives[-1] * negatives[-1]))


def _drop(answers: Table, options: RocAucOptions, truth: tuple[str, ...]) -> Array | None:
    if not options.drop_negative_truth:
        return None
    dropped: Array = np.column_stack([answers[name] for name in truth]).sum(axis=1) < 0
    return dropped


def _score(rows: Rows, y_score: Array, options: RocAucOptions) -> Score:
    y_true = true_indicators(rows)
    areas = [roc_auc(y_true[:, i], y_score[:, i], sample_weight=rows.weight) for i in range(y_true.shape[1])]
    weights = y_true.sum(axis=0) if options.average == "weighted" else None
    details = {"columns": dict(zip(rows.targets, areas, strict=True))} if len(areas) > 1 else {}
    return Score(value=float(np.average(areas, weights=weights)), details=details)


GRADER = define(
    "roc-auc",
    "Area under the ROC curve",
    "maximize",
    read_scores,
    _score,
    options=RocAucOptions,
    perfect=1.0,
    drop=_drop,
)
