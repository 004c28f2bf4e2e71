"""Run-length text, shared by the metrics on masks.

A mask is text with pairs of start and length, separated by whitespace. Pixels are numbered from 1, in column-major (or
row-major) order. Masks stay run-length encoded throughout, so that gigapixel images need little memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mleredux.errors import InvalidSubmission, TaskBroken
from mleredux_tables import Array, Missing, Options, Rows, Table, numbers, texts

_LARGEST = 1 << 60


class MaskOptions(Options):
    """Options of the metrics on masks."""

    height: str | int
    """Column of the answers with the height of each image, or the common height of all images."""
    width: str | int
    missing: Missing = "refuse"
    """`blank`: a missing cell is an empty mask, like a text of blanks."""
    empty_mark: str | None = None
    """A text that means an empty mask."""

    def form_columns(self) -> tuple[str, ...]:
        """Return the columns that the options name."""
        named = [size for size in (self.height, self.width) if isinstance(size, str)]
        return (*super().form_columns(), *named)


@dataclass(frozen=True)
class Runs:
    """A mask as runs that do not overlap.

    Attributes:
        starts: First pixel of each run, from 0, ascending, shape (runs,).
        ends: The pixel after the last one of each run.
    """

    starts: Array
    ends: Array

    @property
    def area(self) -> int:
        """Number of pixels."""
        return int((self.ends - self.starts).sum())

    def pixels(self) -> Array:
        """Return the numbers of all pixels, from 0, ascending, shape (area,)."""
        lengths = self.ends - self.starts
        offsets = np.repeat(self.starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        numbers: Array = np.arange(lengths.sum()) + offsets
        return numbers


def common(a: Runs, b: Runs) -> int:
    """Return the number of pixels in both masks."""
    if not len(a.starts) or not len(b.starts):
        return 0
    return int((_covered(b, a.ends) - _covered(b, a.starts)).sum())


def _covered(runs: Runs, places: Array) -> Array:
    """Count the pixels of a mask before each position."""
    before = np.concatenate([[0], np.cumsum(runs.ends - runs.starts)])
    index = np.searchsorted(runs.starts, places, "right")
    inside = np.minimum(places, runs.ends[np.maximum(index - 1, 0)]) - runs.starts[np.maximum(index - 1, 0)]
    counts: Array = np.where(index > 0, before[np.maximum(index - 1, 0)] + inside, 0)
    return counts


def decode(text: str, size: int) -> Runs:
    """Read a mask.

    As in the published decoders, runs are truncated at the last pixel, runs beyond it are ignored, a single number is
    an empty mask, and the last of three numbers is the length of both runs.

    Args:
        text: Pairs of start and length; empty for an empty mask.
        size: Number of pixels of the image.

    Raises:
        ValueError: The text is malformed; the message completes a sentence.
    """
    try:
        pieces = [min(max(int(piece), -1), _LARGEST) for piece in text.split()]
    except ValueError:
        raise ValueError("contains a piece that is not a whole number") from None
    starts, lengths = np.array(pieces[0::2], dtype=np.int64), np.array(pieces[1::2], dtype=np.int64)
    if len(starts) != len(lengths) and len(pieces) not in (1, 3):
        raise ValueError("contains an odd number of pieces instead of pairs of start and length")
    if (starts[1:] < starts[:-1]).any():
        raise ValueError("has starts that are not increasing")
    if (starts < 1).any():
        raise ValueError("has a start below 1")
    if (lengths < 1).any():
        raise ValueError("has a length below 1")
    if len(pieces) == 1:
        starts = starts[:0]
    starts, ends = np.minimum(starts - 1, size), np.minimum(starts - 1 + lengths, size)
    inside = starts < size
    starts, ends = starts[inside], ends[inside]
    if (starts[1:] < np.maximum.accumulate(ends)[:-1]).any():
        raise ValueError("has runs that overlap")
    return Runs(starts, ends)


def shapes(answers: Table, options: MaskOptions) -> tuple[Array, Array]:
    """Return the height and width of the image of each row of the answers, integers, shape (rows,) each."""
    sizes = [
        numbers(answers[size], size).astype(np.int64) if isinstance(size, str) else np.full(len(answers), size)
        for size in (options.height, options.width)
    ]
    return sizes[0], sizes[1]


def read_masks(rows: Rows, options: MaskOptions) -> list[Runs]:
    """Return the predicted mask of each row.

    Raises:
        InvalidSubmission: A cell is not a mask.
    """
    (target,) = rows.targets
    y_pred = texts(rows.predicted(target), target, missing=options.missing)
    if options.empty_mark is not None:
        y_pred = np.where(y_pred == options.empty_mark, "", y_pred)
    heights, widths = shapes(rows.answers, options)
    masks = []
    for row, cell, size in zip(rows.submission_rows, y_pred, (heights * widths)[rows.answer_rows], strict=True):
        try:
            masks.append(decode(cell, int(size)))
        except ValueError as error:
            raise InvalidSubmission(f"Column {target!r}, row {int(row) + 1}: the mask {error}.") from None
    return masks


def matched_masks(rows: Rows, masks: list[Runs], options: MaskOptions) -> list[tuple[Runs, Runs]]:
    """Return the true and the predicted mask of each row.

    Raises:
        TaskBroken: A cell of the answers is not a mask.
    """
    true = true_masks(rows, options)
    return [(true[row], mask) for row, mask in zip(rows.answer_rows, masks, strict=True)]


def true_masks(rows: Rows, options: MaskOptions) -> list[Runs]:
    """Return the mask of each row of the answers, in the order of the answers.

    Raises:
        TaskBroken: A cell is not a mask.
    """
    (truth,) = rows.truth
    y_true = texts(rows.answers[truth], truth, missing="blank", numbers="text")
    if options.empty_mark is not None:
        y_true = np.where(y_true == options.empty_mark, "", y_true)
    heights, widths = shapes(rows.answers, options)
    try:
        return [decode(cell, int(size)) for cell, size in zip(y_true, heights * widths, strict=True)]
    except ValueError as error:
        raise TaskBroken(f"A mask of the answers {error}.", hint="Prepare the task again.") from None
