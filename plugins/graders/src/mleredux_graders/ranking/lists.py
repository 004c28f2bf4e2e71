"""Ranked lists in a cell: pieces of text with blanks between, best first."""

from __future__ import annotations

from mleredux_graders.frame import Options, Rows, texts
from mleredux_graders.frame.columns import Missing, Numbers


class ListOptions(Options):
    """What the metrics on ranked lists take."""

    k: int = 10
    """Places that count."""
    missing: Missing = "refuse"
    """`nan`: a missing cell is a list of the one text `nan`."""
    numbers: Numbers = "text"


def matched_lists(rows: Rows, options: ListOptions) -> tuple[list[list[str]], list[list[str]]]:
    """True and predicted lists, split at each single blank: two in a row hold an empty piece that takes a place.

    Raises:
        InvalidSubmission: A cell is missing, or the column is one of numbers.
    """
    (target,), (truth,) = rows.targets, rows.truth
    y_pred = texts(rows.predicted(target), target, missing=options.missing, numbers=options.numbers)
    y_true = texts(rows.true(truth), truth, missing="blank", numbers="text")
    return [cell.split(" ") for cell in y_true], [cell.split(" ")[: options.k] for cell in y_pred]
