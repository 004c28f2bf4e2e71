"""Matched columns of text, for metrics that compare millions of strings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mleredux_tables.columns import EMPTY, Array, Missing, Numbers, refuse, texts
from mleredux_tables.matching import Rows
from mleredux_tables.table import Table
from mleredux_tables.utf8 import Utf8

_ROWS = 1 << 12


@dataclass(frozen=True)
class Cells:
    """A matched column of text.

    Attributes:
        texts: Cells in the order of their file.
        rows: The index of each matched row's cell, shape (rows,).
    """

    texts: Utf8
    rows: Array

    def __len__(self) -> int:
        return len(self.rows)

    def strings(self, chosen: Array | slice = slice(None)) -> list[str]:
        """Return the matched cells, or some of them, as str."""
        rows, content = self.rows[chosen], self.texts.data.data
        places = zip(self.texts.starts[rows].tolist(), self.texts.ends[rows].tolist(), strict=True)
        return [str(content[start:end], "utf-8", "surrogatepass") for start, end in places]

    def equal(self, other: Cells) -> Array:
        """Return whether matched cells are equal, booleans, shape (rows,)."""
        return self.texts.equal(self.rows, other.rows, other.texts)


def in_blocks(y_true: Cells, y_pred: Cells) -> Iterator[tuple[Array, Utf8, Utf8]]:
    """Yield matched cells, a few thousand rows at a time, so that derived values stay in the processor's cache.

    Args:
        y_true: The matched true cells.
        y_pred: The matched predicted cells.

    Returns:
        For each block, the numbers of its matched rows, their true texts, and their predicted texts.
    """
    order = np.argsort(y_pred.rows, kind="stable")  # the cells of the submission's file, because they are the longest
    for start in range(0, len(order), _ROWS):
        rows = order[start : start + _ROWS]
        yield rows, y_true.texts.subset(y_true.rows[rows]), y_pred.texts.subset(y_pred.rows[rows])


def predicted_cells(rows: Rows, *, missing: Missing, numbers: Numbers) -> Cells:
    """Return the single target column as text.

    Args:
        rows: The matched rows.
        missing: How missing cells are treated. A column whose cells are all missing counts as text.
        numbers: How to treat a column that was read as numbers or booleans.

    Raises:
        InvalidSubmission: A cell is missing, or the column was read as numbers.
    """
    (target,) = rows.targets
    return _cells(rows.submission, rows.submission_rows, target, missing, numbers)


def true_cells(rows: Rows, *, missing: Missing = "blank") -> Cells:
    """Return the single column of true values as text, with numbers as Python prints them.

    Args:
        rows: The matched rows.
        missing: How missing cells are treated.
    """
    (truth,) = rows.truth
    return _cells(rows.answers, rows.answer_rows, truth, missing, "text")


def _cells(table: Table, rows: Array, name: str, missing: Missing, numbers: Numbers) -> Cells:
    column = table.series(name)
    if getattr(column.dtype, "name", "") not in ("str", "string"):
        return Cells(
            Utf8.of_cells(texts(table[name][rows], name, missing=missing, numbers=numbers)), np.arange(len(rows))
        )
    gaps = np.asarray(column.isna(), dtype=bool)
    if missing == "refuse" and gaps.any():
        refuse(gaps[rows], EMPTY.format(name=name))
    column_text = Utf8.of_column(column)
    return Cells(column_text.filled(gaps, b"nan") if missing == "nan" and gaps.any() else column_text, rows)
