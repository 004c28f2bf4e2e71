"""Mean reciprocal rank."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array, Cells, Rows, define

from mleredux_graders.pieces import Pieces, overlap
from mleredux_graders.ranking.lists import ListOptions, hits, matched_lists, read_lists


def reciprocal_ranks(y_true: Pieces, y_pred: Pieces, rows: int) -> Array:
    """Return 1 / rank of the first relevant piece of each ranked list; 0 if there is none.

    Args:
        y_true: Relevant pieces.
        y_pred: Predicted pieces, best first.
        rows: Number of lists.

    Returns:
        0 to 1, shape (rows,).
    """
    row, place = hits(overlap(y_true, y_pred), y_pred)
    ranks = np.zeros(rows)
    ranks[row[::-1]] = 1 / place[::-1]  # of several in a row, the first is written last
    return ranks


def _score(rows: Rows, y_pred: Cells, options: ListOptions) -> float:
    blocks = matched_lists(rows, y_pred, options)
    return float(np.mean(np.concatenate([np.empty(0), *(reciprocal_ranks(*block) for block in blocks)])))


GRADER = define("mrr", "Mean reciprocal rank", "maximize", read_lists, _score, options=ListOptions, perfect=1.0)
