"""Mean average precision at k."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array, Cells, Rows, define

from mleredux_graders.classification.confusion import ratio
from mleredux_graders.pieces import Pieces, overlap
from mleredux_graders.ranking.lists import ListOptions, hits, matched_lists, read_lists


def average_precisions_at_k(y_true: Pieces, y_pred: Pieces, rows: int, k: int) -> Array:
    """Return the average precision of each ranked list.

    Each of the first k pieces that is relevant and occurs for the first time adds the hits so far divided by its rank;
    the sum is divided by the smaller of k and the number of true pieces.

    Args:
        y_true: Relevant pieces; empty ones are ignored.
        y_pred: Predicted pieces, best first, at most k per row.
        rows: Number of lists.

    Returns:
        0 to 1; 0 if no piece is relevant, shape (rows,).
    """
    y_true = y_true.kept(y_true.texts.lengths > 0)
    common = overlap(y_true, y_pred)
    relevant = np.bincount(y_true.rows[common.true], minlength=rows)
    row, place = hits(common, y_pred)
    hits_so_far = np.arange(1, len(row) + 1) - np.searchsorted(row, row)
    totals = np.bincount(row, weights=hits_so_far / place, minlength=rows)
    return ratio(totals, np.minimum(relevant, k))


def _score(rows: Rows, y_pred: Cells, options: ListOptions) -> float:
    blocks = matched_lists(rows, y_pred, options)
    return float(
        np.mean(np.concatenate([np.empty(0), *(average_precisions_at_k(*block, options.k) for block in blocks)]))
    )


GRADER = define(
    "map-at-k", "Mean average precision at k", "maximize", read_lists, _score, options=ListOptions, perfect=1.0
)
