"""Functions shared by detection metrics of the PASCAL VOC challenges since 2010 (Everingham et al., IJCV 2015)."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array


def first_hits(iou: Array, threshold: float) -> Array:
    """Return which predictions are correct: the first to choose a true box, with enough overlap.

    A prediction considers only its best box; all later ones with the same best box are wrong.

    Args:
        iou: IoU of predicted boxes, by descending confidence, with true boxes; shape (predicted, true).
        threshold: Value that an IoU must exceed.

    Returns:
        Shape (predicted,).
    """
    hits = np.zeros(len(iou), dtype=bool)
    if iou.size:
        best, good = iou.argmax(axis=1), np.flatnonzero(iou.max(axis=1) > threshold)
        hits[good[np.unique(best[good], return_index=True)[1]]] = True
    return hits


def area_under_envelope(hits: Array, scores: Array, total: int) -> float:
    """Return the area under precision over recall, with the best precision at the same or higher recall.

    Predictions with equal confidence form one point of the curve, so that their order never matters.

    Args:
        hits: Whether each prediction is correct, shape (predictions,).
        scores: Their confidences, finite.
        total: Number of true boxes, above 0.

    Returns:
        0 to 1. Undetected true boxes add nothing.
    """
    if not len(hits):
        return 0.0
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    right = np.cumsum(hits[order])[ends]
    precision = np.maximum.accumulate((right / (ends + 1))[::-1])[::-1]
    return float((np.diff(right / total, prepend=0) * precision).sum())
