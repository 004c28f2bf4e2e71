"""Pairs of true and predicted text. Shared by the metrics on them."""

from __future__ import annotations

from mleredux_graders.frame import Array, Missing, Numbers, Options, Rows, texts


class TextOptions(Options):
    """What the metrics on text take."""

    missing: Missing = "refuse"
    """What a missing cell counts as; the answers' own are taken alike."""
    numbers: Numbers = "refuse"
    """Whether a column that is read as numbers is refused, or taken as text."""


def matched_texts(rows: Rows, options: TextOptions) -> tuple[Array, Array]:
    """True and predicted text, object arrays of str, shape (rows,) each.

    Raises:
        InvalidSubmission: A cell is missing, or the column was read as numbers.
    """
    (target,), (truth,) = rows.targets, rows.truth
    y_pred = texts(rows.predicted(target), target, missing=options.missing, numbers=options.numbers)
    lost: Missing = "nan" if options.missing == "nan" else "blank"
    return texts(rows.true(truth), truth, missing=lost, numbers="text"), y_pred
