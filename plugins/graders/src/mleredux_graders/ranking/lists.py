"""Ranked lists in a cell: pieces of text separated by blanks, best first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from mleredux_tables import Array, Cells, Missing, Numbers, Options, Rows, in_blocks, predicted_cells, true_cells

from mleredux_graders.pieces import Overlap, Pieces, split_blanks


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
