"""Area under the ROC curve, with weights for slices of the true positive rate."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array, Rows, define

from mleredux_graders.classification.scores import ScoreOptions, read_scores, true_indicators


class WeightedAucOptions(ScoreOptions):
    """Options of the metric. The default is that of steganalysis, where low false alarm rates count most."""

    slices: tuple[float, ...] = (0.0, 0.4, 1.0)
    """Bounds of the slices, in ascending order."""
    weights: tuple[float, ...] = (2.0, 1.0)
    """One weight per slice."""


def roc_curve(y_true: Array, y_score: Array) -> tuple[Array, Array]:
    """Return false and true positive rates at each distinct score, from (0, 0) to (1, 1).

    Args:
        y_true: 0 and 1, shape (rows,).
        y_score: Shape (rows,).

    Returns:
        Two arrays, shape (points,).
    """
    order = np.argsort(-y_score)
    scores, positive = y_score[order], y_true[order]
    ends = np.flatnonzero(np.append(scores[1:] != scores[:-1], True))
    hits = np.concatenate([[0], np.cumsum(positive)[ends]])
    false = np.concatenate([[0], np.cumsum(1 - positive)[ends]])
    return false / false[-1], hits / hits[-1]


def weighted_roc_auc(y_true: Array, y_score: Array, slices: tuple[float, ...], weights: tuple[float, ...]) -> float:
    """Return the weighted sum of the areas in the slices, divided by that of a perfect curve.

    Returns:
        0 to 1; NaN if one class is missing.
    """
    false, true = roc_curve(y_true, y_score)
    if not np.isfinite(false[-1]) or not np.isfinite(true[-1]):
        return float("nan")
    # add points where the curve crosses a bound, so that the area of a slice is a sum of trapezoids
    for bound in slices[1:-1]:
        if bound not in true:
            after = int(np.searchsorted(true, bound))
            share = (bound - true[after - 1]) / (true[after] - true[after - 1])
            crossing = false[after - 1] + share * (false[after] - false[after - 1])
            false, true = np.insert(false, after, crossing), np.insert(true, after, bound)
    total = 0.0
    for low, high, weight in zip(slices[:-1], slices[1:], weights, strict=True):
        heights = np.clip(true, low, high) - low
        total += weight * float((np.diff(false) * (heights[1:] + heights[:-1]) / 2).sum())
    return total / sum(w * (b - a) for a, b, w in zip(slices[:-1], slices[1:], weights, strict=True))


def _score(rows: Rows, y_score: Array, options: WeightedAucOptions) -> float:
    return weighted_roc_auc(true_indicators(rows)[:, 0], y_score[:, 0], options.slices, options.weights)


GRADER = define(
    "weighted-roc-auc",
    "Weighted area under the ROC curve",
    "maximize",
    read_scores,
    _score,
    options=WeightedAucOptions,
    perfect=1.0,
)
