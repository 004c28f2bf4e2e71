"""Ranked lists: mean average precision, reciprocal rank and discounted gain; pooled Kendall tau of orderings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from mleredux.errors import InvalidSubmission, TaskBroken
from mleredux_tables import (
    Array,
    Cells,
    Numbers,
    Options,
    Rows,
    in_blocks,
    numbers,
    texts,
    true_cells,
)

from mleredux_graders.classification.labels import ratio
from mleredux_graders.directions import similarity
from mleredux_graders.pieces import Overlap, Pieces, overlap, split_blanks
from mleredux_graders.text.strings import TextOptions, read_texts


class ListOptions(TextOptions):
    """Options of the metrics on ranked lists; if `missing` is `nan`, a missing cell is a list with the text `nan`."""

    k: int = 10
    """Number of ranks that count."""
    numbers: Numbers = "text"


def matched_lists(rows: Rows, predicted: Cells, options: ListOptions) -> Iterator[tuple[Pieces, Pieces, int]]:
    """Return true and predicted lists, split at each single blank: two in a row enclose an empty piece, which has a
    rank.

    Returns:
        For each block of rows, the true pieces, the predicted pieces, and the number of rows.
    """
    for here, y_true, y_pred in in_blocks(true_cells(rows), predicted):
        guesses = split_blanks(y_pred)
        yield split_blanks(y_true), guesses.kept(guesses.places < options.k), len(here)


def hits(common: Overlap, y_pred: Pieces) -> tuple[Array, Array]:
    """Return row and rank (from 1) of each relevant piece at its first occurrence, sorted by row and rank."""
    pieces = common.predicted[common.hits]
    width = int(y_pred.places.max(initial=0)) + 1
    ordered = np.sort(y_pred.rows[pieces] * width + y_pred.places[pieces])
    return ordered // width, ordered % width + 1


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


def _mean_precision(rows: Rows, y_pred: Cells, options: ListOptions) -> float:
    blocks = matched_lists(rows, y_pred, options)
    return float(
        np.mean(np.concatenate([np.empty(0), *(average_precisions_at_k(*block, options.k) for block in blocks)]))
    )


MAP_AT_K = similarity("map-at-k", "Mean average precision at k", read_texts, _mean_precision, options=ListOptions)


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


def _mean_reciprocal(rows: Rows, y_pred: Cells, options: ListOptions) -> float:
    blocks = matched_lists(rows, y_pred, options)
    return float(np.mean(np.concatenate([np.empty(0), *(reciprocal_ranks(*block) for block in blocks)])))


MRR = similarity("mrr", "Mean reciprocal rank", read_texts, _mean_reciprocal, options=ListOptions)


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


def _read_gains(rows: Rows, options: NdcgOptions) -> Array:
    (target,) = rows.targets
    return numbers(rows.predicted(target), target)


def _ndcg(rows: Rows, y_score: Array, options: NdcgOptions) -> float:
    y_true = numbers(rows.true(rows.truth[0]), rows.truth[0])
    import pandas as pd

    groups, _ = pd.factorize(rows.true(options.group))
    order = np.argsort(groups, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    return float(np.mean([ndcg(y_true[part], y_score[part], k=options.k) for part in parts]))


NDCG_AT_K = similarity("ndcg-at-k", "NDCG at k", _read_gains, _ndcg, options=NdcgOptions)


class KendallOptions(Options):
    """Options of the metric: cells with ordered pieces, separated by whitespace."""


def inversions(ranks: Array) -> int:
    """Count the pairs in the wrong order.

    Args:
        ranks: Shape (pieces,).
    """
    return int(np.count_nonzero(np.triu(ranks[:, None] > ranks[None, :], k=1)))


def _places(expected: list[str], predicted: list[str], row: int, name: str) -> dict[str, int]:
    if len(expected) != len(predicted):
        raise InvalidSubmission(
            f"Column {name!r} has {len(predicted)} pieces in row {row}; {len(expected)} are expected."
        )
    places: dict[str, int] = {}
    for place, piece in enumerate(predicted):
        places.setdefault(piece, place)
    if not places.keys() >= set(expected):
        raise InvalidSubmission(f"Column {name!r} must be an order of the given pieces; row {row} is not.")
    return places


def _pieces(rows: Rows) -> list[list[str]]:
    """Return the pieces of each row, in the order of the answers, or in that of the sample."""
    (truth,) = rows.truth
    return [cell.split() for cell in texts(rows.true(truth), truth, missing="blank", numbers="text")]


def _read_orders(rows: Rows, options: KendallOptions) -> list[dict[str, int]]:
    """Return the predicted position of each piece, row by row."""
    (target,) = rows.targets
    y_pred = texts(rows.predicted(target), target, numbers="text")
    return [
        _places(pieces, predicted.split(), int(row) + 1, target)
        for row, pieces, predicted in zip(rows.submission_rows, _pieces(rows), y_pred, strict=True)
    ]


def _kendall(rows: Rows, predicted: list[dict[str, int]], options: KendallOptions) -> float:
    wrong = pairs = 0
    for pieces, places in zip(_pieces(rows), predicted, strict=True):
        wrong += inversions(np.array([places[piece] for piece in pieces]))
        pairs += len(pieces) * (len(pieces) - 1)
    if not pairs:
        raise TaskBroken("No row of the answers has two pieces to order.", hint="Prepare the task again.")
    return 1 - 4 * wrong / pairs


KENDALL_TAU_POOLED = similarity(
    "kendall-tau-pooled", "Pooled Kendall tau", _read_orders, _kendall, options=KendallOptions
)
