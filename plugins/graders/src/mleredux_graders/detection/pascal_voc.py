"""What detection metrics share with the PASCAL VOC challenges since 2010 (Everingham et al., IJCV 2015)."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array


def first_hits(iou: Array, threshold: float) -> Array:
    """Which predictions are right: those that are the first to choose a true box, and overlap it enough.

    A prediction checks no other than its best box; every further one that checks the same box is wrong.

    Args:
        iou: Of predicted boxes, by falling confidence, with true boxes; shape (predicted, true).
        threshold: An IoU must be strictly above it.

    Returns:
        Shape (predicted,).
    """
    hits = np.zeros(len(iou), dtype=bool)
    if iou.size:
        best, good = iou.argmax(axis=1), np.flatnonzero(iou.max(axis=1) > threshold)
        hits[good[np.unique(best[good], return_index=True)[1]]] = True
    return hits


def area_under_envelope(hits: Array, scores: Array, total: int) -> float:
    """Area under precision over recall, precision being the best at the same or a higher recall ("all points").

    Predictions of one confidence are one point of the curve, so that their order never matters.

    Args:
        hits: Whether each prediction is right, shape (predictions,).
        scores: Their confidences, finite.
        total: True boxes, above 0.

    Returns:
        0 to 1. True boxes that nothing finds add nothing.
    """
    if not len(hits):
        return 0.0
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    right = np.cumsum(hits[order])[ends]
    precision = np.maximum.accumulate((right / (ends + 1))[::-1])[::-1]
    return float((np.diff(right / total, prepend=0) * precision).sum())
