"""Mean average precision at k."""

from __future__ import annotations

import numpy as np

from mleredux_graders.frame import Rows, define
from mleredux_graders.ranking.lists import ListOptions, matched_lists


def average_precision_at_k(y_true: list[str], y_pred: list[str], k: int) -> float:
    """Average precision of one ranked list.

    Each of the first k pieces that is among the true ones, and was not seen before, adds the hits so far divided by
    its place; the sum is divided by the smaller of k and the number of true ones.

    Args:
        y_true: Relevant pieces.
        y_pred: Predicted pieces, best first.

    Returns:
        0 to 1; 0 where nothing is relevant.
    """
    relevant = set(y_true) - {""}
    if not relevant:
        return 0.0
    wanted, hits, total = set(relevant), 0, 0.0
    for place, piece in enumerate(y_pred[:k], start=1):
        if piece in wanted:
            wanted.remove(piece)
            hits += 1
            total += hits / place
    return total / min(len(relevant), k)


def _score(rows: Rows, options: ListOptions) -> float:
    pairs = zip(*matched_lists(rows, options), strict=True)
    return float(np.mean([average_precision_at_k(y_true, y_pred, options.k) for y_true, y_pred in pairs]))


GRADER = define("map-at-k", "Mean average precision at k", "maximize", _score, options=ListOptions, perfect=1.0)
