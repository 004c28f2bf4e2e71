"""Training targets that are changed for one more execution: predictions of code that learns from them change too.

Code may look answers up by what permutation keeps: the content of a row; month and day, where ids are dates. Such
predictions stay the same whatever the training data says, or are the same classes by other names. So the values of the
targets are exchanged, in two ways, which depend on a feature: only code that learns can tell which.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import TypeVar

from mleredux.plugin.task import Task

from mleredux_artifact_notes.tables import KINDS, NotPermutable, Table, is_training, read_table

Value = TypeVar("Value", bound="str | tuple[str, ...]")
SAME = 0.4
"""Agreement of predictions, beyond that by chance, from which on the training targets do not matter."""
ALL, FEWEST = 0.97, 5
"""Agreement, or share of the predictions of a class, that is taken for all; mean number of rows of a class."""


@dataclass(frozen=True)
class Relabelling:
    """Where the training targets are.

    Attributes:
        columns: Names of the columns of the training data with their values.
        tables: Tables that have all of these, relative to the public folder.
        folders: Folders with a folder for each class, likewise.
    """

    columns: tuple[str, ...] = ()
    tables: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()

    def write(self, public: Path, random: Random) -> None:
        """Change the targets in public files; these may be links to others, which stay as they are."""
        for path in self.tables:
            table = read_table(public / path)
            places = [table.header.index(name) for name in self.columns]
            keys = table.keys(places)
            labelled = [number for number, key in enumerate(keys) if any(key)]
            new = _changed(
                [keys[number] for number in labelled], _feature(table, labelled, self.columns, random), random
            )
            for number, key in zip(labelled, new, strict=True):
                keys[number] = key
            (public / path).unlink()
            changed = {place: [key[part] for key in keys] for part, place in enumerate(places)}
            table.write(public / path, range(len(keys)), changed)
        for folder in self.folders:
            paths = sorted(path for path in (public / folder).glob("*/*") if path.is_file())
            moved = [path.rename(public / f".{number}") for number, path in enumerate(paths)]
            classes = _changed([path.parent.name for path in paths], [random.random() for _ in paths], random)
            for number, (path, aside, name) in enumerate(zip(paths, moved, classes, strict=True)):
                place = public / folder / name / path.name
                aside.rename(place.with_stem(f"{path.stem}-{number}") if place.exists() else place)


def targets_of(task: Task, public: Path) -> tuple[str, ...]:
    """Return the names of the columns that are predicted."""
    form = task.submission
    known = read_table(public / (form.sample or "..")).header
    return form.target_columns or tuple(name for name in known if name not in form.id_columns)


def relabelling_of(task: Task, public: Path) -> Relabelling:
    """Find the training targets.

    Raises:
        NotPermutable: Neither a table nor the names of folders have them.
    """
    targets, sample = targets_of(task, public), Path(task.submission.sample or "..")
    tables = sorted(one.relative_to(public) for one in public.rglob("*") if one.suffix in KINDS and one.is_file())
    read = {path: read_table(public / path) for path in tables if path != sample}
    found = [path for path, table in read.items() if set(targets) <= set(table.header)]
    if found:
        return Relabelling(targets, tuple(found))
    for path, table in read.items():  # a column of classes, of which each has a column of probabilities
        for name in table.header if len(targets) > 1 else ():
            if set(table.cells(name)) == set(targets):
                return Relabelling((name,), (path,))
    folders = {path.parent.parent for path in public.rglob("*") if path.is_file() and path.parent != public}
    classes = {
        folder.relative_to(public): [path for path in folder.iterdir() if path.is_dir()]
        for folder in folders
        if is_training(folder.relative_to(public))
    }
    if named := tuple(folder for folder, below in classes.items() if len(below) > 1):
        return Relabelling(folders=named)
    raise NotPermutable("Neither a table nor folders of the training data have the values that are predicted.")


def agreement(first: Path, second: Path, targets: Iterable[str]) -> float:
    """Return how much two submissions with the rows in the same order agree, beyond chance: at most 1."""
    one, other = read_table(first), read_table(second)
    columns = [(one.cells(name), other.cells(name)) for name in targets if name in one.header and name in other.header]
    return fmean(_agreement(*column) for column in columns) if columns else 0.0


def _agreement(one: Sequence[str], other: Sequence[str]) -> float:
    """The agreement of two columns beyond chance (Cohen's kappa)."""
    equal = fmean(map(_equal, one, other))
    counts, others = Counter(one), Counter(other)
    chance = sum(count * others[value] for value, count in counts.items()) / len(one) ** 2
    return (equal - chance) / (1 - chance) if chance < 1 else equal


def renames(first: Path, second: Path, targets: Iterable[str]) -> bool:
    """Whether a second submission has other names for the classes of the first, as code that knows the classes has."""
    one, other = read_table(first), read_table(second)
    for name in (name for name in targets if name in one.header and name in other.header):
        classes: dict[str, list[str]] = {}
        for cell, new in zip(one.cells(name), other.cells(name), strict=False):
            classes.setdefault(cell, []).append(new)
        most = sum(Counter(cells).most_common(1)[0][1] for cells in classes.values())
        if len(classes) * FEWEST < len(one.rows) and len(set(other.cells(name))) > 1 and most > ALL * len(one.rows):
            return True
    return False


def is_constant(submission: Path, targets: Iterable[str]) -> bool:
    """Whether a submission predicts the same for all rows, so that it holds no answers."""
    table = read_table(submission)
    return all(len(set(table.cells(name))) <= 1 for name in targets if name in table.header)


def _equal(one: str, other: str) -> bool:
    try:
        return math.isclose(float(one), float(other), rel_tol=1e-6, abs_tol=1e-12)
    except ValueError:
        return one == other


def _feature(table: Table, rows: Sequence[int], targets: Iterable[str], random: Random) -> list[float]:
    """The cells of a numeric column; if there is none, random numbers."""
    columns: list[list[float]] = []
    for name in set(table.header) - set(targets):
        with contextlib.suppress(ValueError):
            cells = table.cells(name)
            columns.append([float(cells[row]) for row in rows])
    columns = [column for column in columns if len(set(column)) > len(column) / 4]
    return random.choice(columns or [[random.random() for _ in rows]])


def _changed(targets: Sequence[Value], feature: Sequence[float], random: Random) -> list[Value]:
    """Exchange the values with one another, in one way where a feature is small, in another where it is large."""
    values = sorted(set(targets))
    random.shuffle(values)
    new = {value: values[place - 1] for place, value in enumerate(values)}
    middle = median(feature)
    return [new[new[value] if cell > middle else value] for value, cell in zip(targets, feature, strict=True)]
