"""Pairs of true and predicted text, shared by the metrics on text."""

from __future__ import annotations

from mleredux_tables import Cells, Missing, Numbers, Options, Rows, predicted_cells, true_cells


class TextOptions(Options):
    """Options of the metrics on text."""

    missing: Missing = "refuse"
    """The meaning of a missing cell, in submissions as in answers."""
    numbers: Numbers = "refuse"
    """Whether a column that is read as numbers is rejected or converted to text."""


def read_texts(rows: Rows, options: TextOptions) -> Cells:
    """Return the predicted texts.

    Raises:
        InvalidSubmission: A cell is missing, or the column was read as numbers.
    """
    return predicted_cells(rows, missing=options.missing, numbers=options.numbers)


def true_texts(rows: Rows, options: TextOptions) -> Cells:
    """Return the true texts."""
    return true_cells(rows, missing="nan" if options.missing == "nan" else "blank")
