"""Normalized discounted cumulative gain at k."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array, Options, Rows, define, numbers


class NdcgOptions(Options):
    """Options of NDCG."""

    k: int | None = None
    """Number of ranks that count; None for all."""
    group: str
    """Column of the answers that groups the rows that are ranked together (the query)."""

    def answer_columns(self) -> tuple[str, ...]:
        """Return the columns that the options name."""
        return (*super().answer_columns(), self.group)


def ndcg(y_true: Array, y_score: Array, *, k: int | None = None) -> float:
    """Return the NDCG of one ranking (Järvelin & Kekäläinen 2002), with linear gains.

    Ties share their mean gain (McSherry & Najork 2008).

    Args:
        y_true: Relevance, 0 or more, shape (rows,).
        y_score: Predicted scores, shape (rows,).
        k: Number of ranks that count.

    Returns:
        0 to 1; 0 if nothing is relevant.
    """
    discount = 1 / np.log2(np.arange(len(y_true)) + 2)
    discount[k if k is not None else len(y_true) :] = 0
    best = np.sort(y_true)[::-1] @ discount
    if best <= 0:
        return 0.0
    _, tied, counts = np.unique(-y_score, return_inverse=True, return_counts=True)
    gain = np.bincount(tied, weights=y_true) / counts
    ends = np.cumsum(counts)
    summed = np.concatenate([[0], np.cumsum(discount)])
    return float((gain * (summed[ends] - summed[ends - counts])).sum() / best)


def _read(rows: Rows, options: NdcgOptions) -> Array:
    (target,) = rows.targets
    return numbers(rows.predicted(target), target)


def _score(rows: Rows, y_score: Array, options: NdcgOptions) -> float:
    y_true = numbers(rows.true(rows.truth[0]), rows.truth[0])
    import pandas as pd

    groups, _ = pd.factorize(rows.true(options.group))
    order = np.argsort(groups, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    return float(np.mean([ndcg(y_true[part], y_score[part], k=options.k) for part in parts]))


GRADER = define("ndcg-at-k", "NDCG at k", "maximize", _read, _score, options=NdcgOptions, perfect=1.0)
