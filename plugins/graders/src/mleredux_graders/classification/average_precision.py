"""Average precision."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array, Rows, define

from mleredux_graders.classification.scores import ScoreOptions, read_scores, true_indicators


def average_precision(y_true: Array, y_score: Array, *, sample_weight: Array | None = None) -> float:
    """Return the sum over distinct scores, from high to low, of the increase in recall times the precision.

    Args:
        y_true: 0 and 1, shape (rows,).
        y_score: Shape (rows,).

    Returns:
        0 to 1; 0 if there are no positive rows.
    """
    weight = np.ones(len(y_true)) if sample_weight is None else sample_weight
    order = np.argsort(-y_score)
    scores, positive = y_score[order], (weight * y_true)[order]
    ends = np.flatnonzero(np.append(scores[1:] != scores[:-1], True)) if len(scores) else np.empty(0, np.intp)
    hits, taken = np.cumsum(positive)[ends], np.cumsum(weight[order])[ends]
    if not len(ends) or hits[-1] <= 0:
        return 0.0
    return float((np.diff(hits, prepend=0) / hits[-1] * (hits / taken)).sum())


def _score(rows: Rows, y_score: Array, options: ScoreOptions) -> float:
    y_true = true_indicators(rows)
    columns = range(y_true.shape[1])
    return float(np.mean([average_precision(y_true[:, i], y_score[:, i], sample_weight=rows.weight) for i in columns]))


GRADER = define(
    "average-precision", "Average precision", "maximize", read_scores, _score, options=ScoreOptions, perfect=1.0
)
