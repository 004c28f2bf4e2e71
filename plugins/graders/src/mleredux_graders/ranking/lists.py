"""Ranked lists in a cell: pieces of text with blanks between, best first."""

from __future__ import annotations

import numpy as np

from mleredux_graders.frame import Array, Options, Rows, predicted_cells, true_cells
from mleredux_graders.frame.columns import Missing, Numbers
from mleredux_graders.frame.pieces import Overlap, Pieces, split_blanks


class ListOptions(Options):
    """What the metrics on ranked lists take."""

    k: int = 10
    """Places that count."""
    missing: Missing = "refuse"
    """`nan`: a missing cell is a list of the one text `nan`."""
    numbers: Numbers = "text"


def matched_lists(rows: Rows, options: ListOptions) -> tuple[Pieces, Pieces]:
    """True and predicted lists, split at each single blank: two in a row hold an empty piece that takes a place.

    Raises:
        InvalidSubmission: A cell is missing, or the column is one of numbers.
    """
    y_pred = predicted_cells(rows, missing=options.missing, numbers=options.numbers).pieces(split_blanks)
    return true_cells(rows).pieces(split_blanks), y_pred.kept(y_pred.places < options.k)


def hits(found: Overlap, y_pred: Pieces) -> tuple[Array, Array]:
    """Row and place (from 1) of each piece that is relevant and was not seen before, by row and place."""
    pieces = found.predicted[found.hits]
    width = int(y_pred.places.max(initial=0)) + 1
    ordered = np.sort(y_pred.rows[pieces] * width + y_pred.places[pieces])
    return ordered // width, ordered % width + 1
