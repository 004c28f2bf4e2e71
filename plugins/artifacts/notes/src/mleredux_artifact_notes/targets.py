"""Training targets that are changed for one more execution: predictions of code that learns from them change too.

Where ids are dates, or the answers are public, code may look answers up by what permutation keeps: month and day, or
the content of a row. Such predictions stay the same whatever the training data says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from mleredux.plugin.task import Task

from mleredux_artifact_notes.tables import KINDS, NotPermutable, read_table

MOST_CLASSES = 50
"""Numbers with more distinct values are multiplied; other values are exchanged, none stays."""
SAME = 0.9
"""Share of the predictions that must be the same for the training targets not to matter."""


@dataclass(frozen=True)
class Relabelling:
    """Where the training targets are.

    Attributes:
        targets: Names of the target columns.
        tables: Tables that have all of them, relative to the public folder.
    """

    targets: tuple[str, ...]
    tables: tuple[Path, ...]

    def write(self, public: Path, random: Random) -> None:
        """Change the targets in public files; these may be links to others, which stay as they are."""
        read = {path: read_table(public / path) for path in self.tables}
        changed: dict[Path, dict[int, list[str]]] = {path: {} for path in read}
        for name in self.targets:
            cells = {path: table.cells(name) for path, table in read.items()}
            new = _new({cell for column in cells.values() for cell in column if cell}, random)
            for path, table in read.items():
                changed[path][table.header.index(name)] = [new.get(cell, cell) for cell in cells[path]]
        for path, table in read.items():
            (public / path).unlink()
            table.write(public / path, range(len(table.rows)), changed[path])


def relabelling_of(task: Task, public: Path) -> Relabelling:
    """Find the training targets.

    Raises:
        NotPermutable: No table has them.
    """
    form = task.submission
    sample = Path(form.sample or "..")
    known = read_table(public / sample).header
    targets = form.target_columns or tuple(name for name in known if name not in form.id_columns)
    tables = sorted(one.relative_to(public) for one in public.rglob("*") if one.suffix in KINDS and one.is_file())
    found = [path for path in tables if path != sample and set(targets) <= set(read_table(public / path).header)]
    if not found:
        raise NotPermutable("No table of the training data has the columns that are predicted.")
    return Relabelling(tuple(targets), tuple(found))


def same_predictions(first: Path, second: Path, targets: Iterable[str]) -> bool:
    """Whether two submissions with the rows in the same order predict the same, and not the same for all rows."""
    one, other = read_table(first), read_table(second)
    try:
        columns = [(one.cells(name), other.cells(name)) for name in targets]
    except ValueError:
        return False
    pairs = [pair for column in columns for pair in zip(*column, strict=False)]
    varied = any(len(set(before)) > 1 for before, _ in columns)
    return varied and sum(_equal(*pair) for pair in pairs) >= SAME * len(pairs)


def _equal(one: str, other: str) -> bool:
    try:
        return math.isclose(float(one), float(other), rel_tol=1e-6, abs_tol=1e-12)
    except ValueError:
        return one == other


def _new(values: set[str], random: Random) -> dict[str, str]:
    """Another value for each: numbers are multiplied, classes exchanged."""
    ordered = sorted(values)
    try:
        numbers = [float(value) for value in ordered]
    except ValueError:
        numbers = []
    if numbers and len(ordered) > MOST_CLASSES:
        factor = random.choice((2, 3))
        whole = all(number.is_integer() and "." not in value for number, value in zip(numbers, ordered, strict=True))
        return {
            value: str(factor * int(number)) if whole else repr(factor * number)
            for value, number in zip(ordered, numbers, strict=True)
        }
    step = random.randrange(1, max(2, len(ordered)))
    return {value: ordered[(place + step) % len(ordered)] for place, value in enumerate(ordered)}
