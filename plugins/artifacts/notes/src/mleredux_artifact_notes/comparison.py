"""Comparison of two submissions, by bytes and by values."""

from __future__ import annotations

import csv
import filecmp
import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MAX_CELL = 1 << 24


@dataclass(frozen=True)
class Comparison:
    """The differences between two CSV files, compared cell by cell in order.

    Attributes:
        identical: Whether the bytes are the same.
        cells: Number of compared cells.
        differing: Number of cells that differ by more than the tolerance, or as strings.
        largest: The largest numeric difference; None if no numbers differ.
        reason: Why the files cannot be compared cell by cell, if so.
    """

    identical: bool
    cells: int = 0
    differing: int = 0
    largest: float | None = None
    reason: str | None = None

    @property
    def equal(self) -> bool:
        """Return whether the files are equal within the tolerance."""
        return self.identical or (self.reason is None and self.differing == 0)

    def as_json(self) -> dict[str, Any]:
        """Return the fields for the JSON record."""
        return {**vars(self), "equal": self.equal}


def compare(first: Path, second: Path, tolerance: float) -> Comparison:
    """Compare two submissions.

    Args:
        tolerance: Maximum difference between two numbers, relative to the larger one, or absolute if that is below 1.
    """
    if filecmp.cmp(first, second, shallow=False):
        return Comparison(True)
    csv.field_size_limit(_MAX_CELL)
    cells = differing = 0
    largest: float | None = None
    with (
        first.open(encoding="utf-8", errors="replace", newline="") as one,
        second.open(encoding="utf-8", errors="replace", newline="") as other,
    ):
        try:
            for number, (before, after) in enumerate(itertools.zip_longest(csv.reader(one), csv.reader(other))):
                if before is None or after is None:
                    return Comparison(False, cells, differing, largest, f"one of the files ends at row {number}")
                if len(before) != len(after):
                    return Comparison(False, cells, differing, largest, f"row {number} has different columns")
                for old, new in zip(before, after, strict=True):
                    cells += 1
                    if old == new:
                        continue
                    gap = _gap(old, new)
                    if gap is not None:
                        largest = max(largest or 0.0, gap[0])
                    if gap is None or gap[1] > tolerance:
                        differing += 1
        except csv.Error as error:
            return Comparison(False, cells, differing, largest, f"one of the files is not a valid CSV file ({error})")
    return Comparison(False, cells, differing, largest)


def _gap(old: str, new: str) -> tuple[float, float] | None:
    """Return the absolute difference of two numbers, and the one compared with the tolerance; None if either is not a
    number."""
    try:
        one, other = float(old), float(new)
    except ValueError:
        return None
    if not (math.isfinite(one) and math.isfinite(other)):
        return None
    gap = abs(one - other)
    return gap, gap / max(1.0, abs(one), abs(other))
