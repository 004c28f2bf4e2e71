"""Columns of text, matched: what the metrics on millions of texts work on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mleredux_graders.frame.columns import EMPTY, Array, Missing, Numbers, refuse, texts
from mleredux_graders.frame.matching import Rows
from mleredux_graders.frame.pieces import Pieces
from mleredux_graders.frame.tables import Table
from mleredux_graders.frame.utf8 import Utf8


@dataclass(frozen=True)
class Cells:
    """A column of text, matched.

    Attributes:
        texts: Cells in the order of their file.
        rows: Which of them each matched row has, shape (rows,).
    """

    texts: Utf8
    rows: Array

    def __len__(self) -> int:
        return len(self.rows)

    def strings(self, chosen: Array | slice = slice(None)) -> list[str]:
        """The matched cells, or some of them, as str."""
        rows, content = self.rows[chosen], self.texts.data.data
        places = zip(self.texts.starts[rows].tolist(), self.texts.ends[rows].tolist(), strict=True)
        return [str(content[start:end], "utf-8", "surrogatepass") for start, end in places]

    def equal(self, other: Cells) -> Array:
        """Whether matched cells are equal, booleans, shape (rows,)."""
        return self.texts.equal(self.rows, other.rows, other.texts)

    def pieces(self, split: Callable[[Utf8], Pieces]) -> Pieces:
        """All matched cells split, their pieces numbered by matched row."""
        places = np.full(len(self.texts), -1, dtype=np.int64)
        places[self.rows] = np.arange(len(self.rows))
        used = np.count_nonzero(places >= 0)
        if used < len(self.rows) or 2 * used < len(self.texts):  # some twice, or few
            return split(self.texts.subset(self.rows))
        found = split(self.texts)
        return found if (self.rows[1:] > self.rows[:-1]).all() and used == len(self.texts) else found.moved(places)


def predicted_cells(rows: Rows, *, missing: Missing, numbers: Numbers) -> Cells:
    """The one target column as text.

    Args:
        missing: What missing cells count as. A column without any filled cell counts as one of text.
        numbers: What happens to a column that was read as numbers, or as true and false.

    Raises:
        InvalidSubmission: A cell is missing, or the column was read as numbers.
    """
    (target,) = rows.targets
    return _cells(rows.submission, rows.submission_rows, target, missing, numbers)


def true_cells(rows: Rows, *, missing: Missing = "blank") -> Cells:
    """The one column of the truth as text, numbers as Python prints them."""
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
    found = Utf8.of_column(column)
    return Cells(found.filled(gaps, b"nan") if missing == "nan" and gaps.any() else found, rows)
