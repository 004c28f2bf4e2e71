"""Mean reciprocal rank."""

from __future__ import annotations

import numpy as np

from mleredux_graders.frame import Rows, define
from mleredux_graders.ranking.lists import ListOptions, matched_lists


def reciprocal_rank(y_true: list[str], y_pred: list[str]) -> float:
    """1 / place of the first relevant piece, 0 where there is none.

    Args:
        y_true: Relevant pieces.
        y_pred: Predicted pieces, best first.
    """
    relevant = set(y_true)
    return next((1 / place for place, piece in enumerate(y_pred, start=1) if piece in relevant), 0.0)


def _score(rows: Rows, options: ListOptions) -> float:
    pairs = zip(*matched_lists(rows, options), strict=True)
    return float(np.mean([reciprocal_rank(y_true, y_pred) for y_true, y_pred in pairs]))


GRADER = define("mrr", "Mean reciprocal rank", "maximize", _score, options=ListOptions, perfect=1.0)
