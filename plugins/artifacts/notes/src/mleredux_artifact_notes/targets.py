"""Training targets that are changed for one more execution: predictions of code that learns from them change too.

Code may look answers up by what permutation keeps: the content of a row; month and day, where ids are dates. Such
predictions stay the same whatever the training data says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean

from mleredux.plugin.task import Task

from mleredux_artifact_notes.tables import KINDS, NotPermutable, read_table

MOST_CLASSES = 50
"""Numbers with more distinct values are multiplied and moved; other values are exchanged, none stays."""
SAME = 0.5
"""Share of the predictions that must be the same for the training targets not to matter."""


@dataclass(frozen=True)
class Relabelling:
    """Where the training targets are.

    Attributes:
        targets: Names of the columns that are predicted.
        columns: Names of the columns of the training data with their values.
        tables: Tables that have all of these, relative to the public folder.
        proves: Whether predictions that stay the same are looked up; else they may come from a rule as well.
    """

    targets: tuple[str, ...]
    columns: tuple[str, ...]
    tables: tuple[Path, ...]
    proves: bool = False

    def write(self, public: Path, random: Random) -> None:
        """Change the targets in public files; these may be links to others, which stay as they are."""
        read = {path: read_table(public / path) for path in self.tables}
        changed: dict[Path, dict[int, list[str]]] = {path: {} for path in read}
        for name in self.columns:
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
    read = {path: read_table(public / path) for path in tables if path != sample}
    found = [path for path, table in read.items() if set(targets) <= set(table.header)]
    if found:
        return Relabelling(tuple(targets), tuple(targets), tuple(found))
    for path, table in read.items():  # a column of classes, of which each has a column of probabilities
        for name in table.header if len(targets) > 1 else ():
            if set(table.cells(name)) == set(targets):
                return Relabelling(tuple(targets), (name,), (path,))
    raise NotPermutable("No table of the training data has the columns that are predicted.")


def same_predictions(first: Path, second: Path, targets: Iterable[str]) -> bool:
    """Whether two submissions with the rows in the same order predict the same."""
    one, other = read_table(first), read_table(second)
    try:
        columns = [(one.cells(name), other.cells(name)) for name in targets]
    except ValueError:
        return False
    pairs = [pair for column in columns for pair in zip(*column, strict=False)]
    return sum(_equal(*pair) for pair in pairs) >= SAME * len(pairs)


def is_constant(submission: Path, targets: Iterable[str]) -> bool:
    """Whether a submission predicts the same for all rows, so that it holds no answers."""
    table = read_table(submission)
    return all(len(set(table.cells(name))) <= 1 for name in targets if name in table.header)


def _equal(one: str, other: str) -> bool:
    try:
        return math.isclose(float(one), float(other), rel_tol=1e-6, abs_tol=1e-12)
    except ValueError:
        return one == other


def _new(values: set[str], random: Random) -> dict[str, str]:
    """Another value for each: numbers are multiplied and moved, classes exchanged."""
    ordered = sorted(values)
    try:
        numbers = [float(value) for value in ordered]
    except ValueError:
        numbers = []
    if numbers and len(ordered) > MOST_CLASSES:
        factor = random.choice((2, 3))
        moved = fmean(map(abs, numbers)) or 1.0  # so that zero, which may be most of them, does not stay either
        whole = all(number.is_integer() and "." not in value for number, value in zip(numbers, ordered, strict=True))
        return {
            value: str(factor * int(number) + math.ceil(moved)) if whole else repr(factor * number + moved)
            for value, number in zip(ordered, numbers, strict=True)
        }
    step = random.randrange(1, max(2, len(ordered)))
    return {value: ordered[(place + step) % len(ordered)] for place, value in enumerate(ordered)}
