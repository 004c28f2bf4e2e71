"""Ranked lists in a cell, pieces of text separated by blanks, best first: mean average precision, reciprocal rank."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from mleredux_tables import (
    Array,
    Cells,
    Missing,
    Numbers,
    Options,
    Rows,
    define,
    in_blocks,
    predicted_cells,
    true_cells,
)

from mleredux_graders.classification.confusion import ratio
from mleredux_graders.pieces import Overlap, Pieces, overlap, split_blanks


class ListOptions(Options):
    """Options of the metrics on ranked lists."""

    k: int = 10
    """Number of ranks that count."""
    missing: Missing = "refuse"
    """`nan`: a missing cell is a list with the single text `nan`."""
    numbers: Numbers = "text"


def read_lists(rows: Rows, options: ListOptions) -> Cells:
    """Return the predicted lists.

    Raises:
        InvalidSubmission: A cell is missing, or the column is numeric.
    """
    return predicted_cells(rows, missing=options.missing, numbers=options.numbers)


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


MAP_AT_K = define(
    "map-at-k", "Mean average precision at k", "maximize", read_lists, _mean_precision, options=ListOptions, perfect=1.0
)


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


MRR = define("mrr", "Mean reciprocal rank", "maximize", read_lists, _mean_reciprocal, options=ListOptions, perfect=1.0)
