"""Pairs of true and predicted text. Shared by the metrics on them."""

from __future__ import annotations

from mleredux_tables import Cells, Missing, Numbers, Options, Rows, predicted_cells, true_cells


class TextOptions(Options):
    """What the metrics on text take."""

    missing: Missing = "refuse"
    """What a missing cell counts as; the answers' own are taken alike."""
    numbers: Numbers = "refuse"
    """Whether a column that is read as numbers is refused, or taken as text."""


def read_texts(rows: Rows, options: TextOptions) -> Cells:
    """Predicted text.

    Raises:
        InvalidSubmission: A cell is missing, or the column was read as numbers.
    """
    return predicted_cells(rows, missing=options.missing, numbers=options.numbers)


def true_texts(rows: Rows, options: TextOptions) -> Cells:
    """True text."""
    return true_cells(rows, missing="nan" if options.missing == "nan" else "blank")
