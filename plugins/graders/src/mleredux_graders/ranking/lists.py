"""Ranked lists in a cell: pieces of text with blanks between, best first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from mleredux_tables import Array, Cells, Missing, Numbers, Options, Rows, in_blocks, predicted_cells, true_cells

from mleredux_graders.pieces import Overlap, Pieces, split_blanks


class ListOptions(Options):
    """What the metrics on ranked lists take."""

    k: int = 10
    """Places that count."""
    missing: Missing = "refuse"
    """`nan`: a missing cell is a list of the one text `nan`."""
    numbers: Numbers = "text"


def read_lists(rows: Rows, options: ListOptions) -> Cells:
    """Predicted lists.

    Raises:
        InvalidSubmission: A cell is missing, or the column is one of numbers.
    """
    return predicted_cells(rows, missing=options.missing, numbers=options.numbers)


def matched_lists(rows: Rows, predicted: Cells, options: ListOptions) -> Iterator[tuple[Pieces, Pieces, int]]:
    """True and predicted lists, split at each single blank: two in a row hold an empty piece that takes a place.

    Returns:
        For each of many blocks of rows its true pieces, its predicted ones, and the number of its rows.
    """
    for here, y_true, y_pred in in_blocks(true_cells(rows), predicted):
        guesses = split_blanks(y_pred)
        yield split_blanks(y_true), guesses.kept(guesses.places < options.k), len(here)


def hits(found: Overlap, y_pred: Pieces) -> tuple[Array, Array]:
    """Row and place (from 1) of each piece that is relevant and was not seen before, by row and place."""
    pieces = found.predicted[found.hits]
    width = int(y_pred.places.max(initial=0)) + 1
    ordered = np.sort(y_pred.rows[pieces] * width + y_pred.places[pieces])
    return ordered // width, ordered % width + 1
