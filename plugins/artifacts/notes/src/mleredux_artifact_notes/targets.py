"""Changed training targets for one more execution, which predictions must follow if the code learns.

Code may look up answers using data that permutation preserves: the content of a row or, if ids are dates, the month and
day.
Predictions of such code do not follow the change, or are exactly the same classes under other names. So numbers are
reflected, and other values are exchanged with one another. A sixth of the rows keep their classes, which makes code
that learns err.
"""

from __future__ import annotations

import contextlib
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import StatisticsError, correlation, fmean, mode, quantiles

from mleredux.plugin.task import Task

from mleredux_artifact_notes.tables import KINDS, NotPermutable, Table, is_training, read_table

MOST_CLASSES = 50
FOLLOWS = 0.2
"""Minimum agreement (Cohen's kappa) or correlation of the predictions with the expected ones."""
ALL, FEWEST = 0.97, 5
"""Minimum share of predictions that counts as all; minimum mean number of rows per class."""


@dataclass
class Relabelling:
    """The locations and new values of the training targets.

    Attributes:
        targets: Names of the predicted columns.
        columns: Names of the columns of the training data that contain their values.
        tables: Tables that contain all of these columns, relative to the public folder.
        folders: Folders with a subfolder for each class, relative to the public folder.
        new: The new value of each class, set when they are written; empty if numbers are reflected.
        old: The original targets: the class of each row, or columns of numbers.
        keeps: Whether a sixth of the rows keep their classes.
    """

    targets: tuple[str, ...]
    columns: tuple[str, ...] = ()
    tables: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    new: dict[str, str] = field(default_factory=dict)
    old: Sequence[Sequence[str]] = ()
    keeps: bool = True
    _few: bool = True

    def write(self, public: Path, random: Random) -> None:
        """Change the targets in public files; files to which these are links are not modified."""
        for path in self.tables:
            table = read_table(public / path)
            columns = [table.cells(name) for name in self.columns]
            rows = [row for row in range(len(table.rows)) if any(column[row] for column in columns)]
            if not rows:
                continue
            fixed = _upper_sixth(_feature(table, rows, self.columns, random))
            changed = self._changed([[column[row] for row in rows] for column in columns], fixed, random)
            for column, cells in zip(columns, changed, strict=True):
                for row, cell in zip(rows, cells, strict=True):
                    column[row] = cell
            (public / path).unlink()
            places = [table.header.index(name) for name in self.columns]
            table.write(public / path, range(len(table.rows)), dict(zip(places, columns, strict=True)))
        for folder in self.folders:
            paths = sorted(path for path in (public / folder).glob("*/*") if path.is_file())
            moved = [path.rename(public / f".{number}") for number, path in enumerate(paths)]
            fixed = _upper_sixth([random.random() for _ in paths])
            [classes] = self._changed([[path.parent.name for path in paths]], fixed, random)
            for number, (path, aside, name) in enumerate(zip(paths, moved, classes, strict=True)):
                place = public / folder / name / path.name
                aside.rename(place.with_stem(f"{path.stem}-{number}") if place.exists() else place)

    def _changed(self, columns: list[list[str]], fixed: list[bool], random: Random) -> list[list[str]]:
        """Change the cells of columns; classes are not changed in rows that are kept."""
        fixed = [stays and self.keeps for stays in fixed]
        self._few = all(len(set(column)) <= MOST_CLASSES for column in columns)
        numbers = [[_number(cell) for cell in column] for column in columns]
        one_hot = len(columns) > 1 and all(
            sorted(row) == [0] * (len(row) - 1) + [1] for row in zip(*numbers, strict=True)
        )
        if one_hot or any(math.isnan(cell) for column in numbers for cell in column):
            rows = list(zip(*columns, strict=True))
            values = sorted(set(rows))
            random.shuffle(values)
            exchanged = {value: values[place - 1] for place, value in enumerate(values)}
            named = {row: self.targets[row.index(max(row))] if one_hot else row[0] for row in values}
            self.new = {named[value]: named[other] for value, other in exchanged.items()}
            self.old = [[named[row] for row in rows]]
            changed = [row if stays else exchanged[row] for row, stays in zip(rows, fixed, strict=True)]
            return [list(column) for column in zip(*changed, strict=True)]
        self.old = columns
        return [_reflected(column, fixed if self._few else [False] * len(fixed)) for column in columns]

    def follow(self, first: Path, second: Path) -> bool:
        """Return whether the predictions of a second submission, with the rows in the same order, follow the
        changes."""
        if self.new:
            before, after = self._labels(first), self._labels(second)
            return _agreement([self.new.get(label, label) for label in before], after) >= FOLLOWS
        pairs = zip(self._columns(first), self._columns(second), strict=True)
        return fmean(_correlation(*pair) for pair in pairs) <= -FOLLOWS

    def renames(self, first: Path, second: Path, other: Path | None = None) -> bool:
        """Return whether a second submission has the classes of the first under other names: in all rows or, given
        another submission for data in which no row keeps its class, in as many rows as in that one."""
        share = self._renamed(first, second) if self._few else 0.0
        return 0 < share >= ALL * (self._renamed(first, other) if other else 1)

    def _renamed(self, first: Path, second: Path) -> float:
        """Return the share of rows that have, in the second, the name that most rows of their class have there."""
        before, after = self._labels(first), self._labels(second)
        classes: dict[str, list[str]] = {}
        for label, renamed in zip(before, after, strict=True):
            classes.setdefault(label, []).append(renamed)
        most = sum(Counter(cells).most_common(1)[0][1] for cells in classes.values())
        return most / len(before) if len(classes) * FEWEST < len(before) else 0.0

    def write_back(self, changed: Path, target: Path) -> None:
        """Write a submission for the changed data with its predictions mapped back to the original targets."""
        table = read_table(changed)
        cells = {name: table.cells(name) for name in self.targets}
        old = {value: key for key, value in self.new.items()}
        if not old:
            cells = {name: _interpolated(cells[name], self.old[place]) for place, name in enumerate(self.targets)}
        elif len(self.targets) > 1:
            cells = {name: cells[self.new.get(name, name)] for name in self.targets}
        else:
            cells = {name: [old.get(cell, cell) for cell in column] for name, column in cells.items()}
        table.write(target, range(len(table.rows)), {table.header.index(name): cells[name] for name in cells})

    def write_constant(self, submission: Path, target: Path) -> None:
        """Write a submission without skill that predicts the same for each row: the mean, or the most frequent
        class."""
        table, cells = read_table(submission), dict[int, list[str]]()
        for number, name in enumerate(self.targets):
            if self.new and len(self.targets) > 1:
                value = str(self.old[0].count(name) / len(self.old[0]))
            elif self.new or (self._few and set(table.cells(name)) <= set(self.old[number])):
                value = mode(self.old[number])
            else:
                value = str(fmean(map(float, self.old[number])))
            cells[table.header.index(name)] = [value] * len(table.rows)
        table.write(target, range(len(table.rows)), cells)

    def _columns(self, submission: Path) -> list[list[float]]:
        table = read_table(submission)
        return [[_number(cell) for cell in table.cells(name)] for name in self.targets]

    def _labels(self, submission: Path) -> list[str]:
        """Return the class of each row: the column with the largest number, or the cells; probabilities are rounded."""
        if len(self.targets) > 1 and self.new:
            rows = zip(*self._columns(submission), strict=True)
            return [self.targets[row.index(max(row))] for row in rows]
        table = read_table(submission)
        cells = table.cells(self.targets[0])
        if len(set(cells)) <= MOST_CLASSES and len(set(cells)) * FEWEST < len(cells):
            return [" ".join(key) for key in table.keys([table.header.index(name) for name in self.targets])]
        mean = fmean(map(_number, cells))
        return [str(_number(cell) > mean) for cell in cells]


def targets_of(task: Task, public: Path) -> tuple[str, ...]:
    """Return the names of the predicted columns."""
    form = task.submission
    known = read_table(public / (form.sample or "..")).header
    return form.target_columns or tuple(name for name in known if name not in form.id_columns)


def relabelling_of(task: Task, public: Path) -> Relabelling:
    """Find the training targets.

    Raises:
        NotPermutable: Neither a table nor the names of folders contain them.
    """
    targets, sample = targets_of(task, public), Path(task.submission.sample or "..")
    tables = sorted(file.relative_to(public) for file in public.rglob("*") if file.suffix in KINDS and file.is_file())
    read = {path: read_table(public / path) for path in tables if path != sample}
    complete = [path for path, table in read.items() if set(targets) <= set(table.header)]
    if complete:
        return Relabelling(targets, targets, tuple(complete))
    for path, table in read.items():  # a column of classes, each with its own column of probabilities
        for name in table.header if len(targets) > 1 else ():
            if set(table.cells(name)) == set(targets):
                return Relabelling(targets, (name,), (path,))
    folders = {path.parent.parent for path in public.rglob("*") if path.is_file() and path.parent != public}
    classes = {
        folder.relative_to(public): [path for path in folder.iterdir() if path.is_dir()]
        for folder in folders
        if is_training(folder.relative_to(public))
    }
    if named := tuple(folder for folder, below in classes.items() if len(below) > 1):
        return Relabelling(targets, folders=named)
    raise NotPermutable("The training data contains the target values neither in a table nor as folder names.")


def agreement(first: Path, second: Path) -> float:
    """Return the share of equal rows between two submissions with the rows in the same order."""
    return fmean(map(list.__eq__, read_table(first).rows, read_table(second).rows))


def _agreement(before: Sequence[str], after: Sequence[str]) -> float:
    """Return the agreement of two columns beyond chance (Cohen's kappa)."""
    equal = fmean(map(str.__eq__, before, after))
    counts, others = Counter(before), Counter(after)
    chance = sum(count * others[value] for value, count in counts.items()) / len(before) ** 2
    return (equal - chance) / (1 - chance) if chance < 1 else 0.0


def _correlation(before: list[float], after: list[float]) -> float:
    with contextlib.suppress(StatisticsError):  # a constant column
        return correlation(before, after)
    return 0.0


def is_constant(submission: Path, targets: Iterable[str]) -> bool:
    """Return whether a submission predicts the same for all rows, and thus contains no answers."""
    table = read_table(submission)
    return all(len(set(table.cells(name))) <= 1 for name in targets if name in table.header)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _upper_sixth(numbers: Sequence[float]) -> list[bool]:
    limit = quantiles(numbers, n=6)[4] if len(numbers) > 1 else math.inf
    return [number > limit for number in numbers]


def _reflected(column: list[str], fixed: list[bool]) -> list[str]:
    """Exchange the largest number with the smallest and so on, except in rows that are kept."""
    values = sorted(set(column), key=_number)
    new = dict(zip(values, reversed(values), strict=True))
    return [cell if stays else new[cell] for cell, stays in zip(column, fixed, strict=True)]


def _interpolated(cells: Iterable[str], old: Iterable[str]) -> list[str]:
    """Exchange numbers as `_reflected` does, interpolating numbers that lie between two old values."""
    texts = {float(cell): cell for cell in old}
    values, ranks = sorted(texts), list[str]()
    for number in (min(max(_number(cell), values[0]), values[-1]) for cell in cells):
        place = bisect_left(values, number)
        after = values[-1 - place]
        if number == values[place]:
            ranks.append(texts[after])
            continue
        share = (values[place] - number) / (values[place] - values[place - 1])
        ranks.append(str(after + share * (values[-place] - after)))
    return ranks


def _feature(table: Table, rows: Sequence[int], targets: Iterable[str], random: Random) -> list[float]:
    """Return the cells of a numeric column or, if there is none, random numbers."""
    columns: list[list[float]] = []
    for name in set(table.header) - set(targets):
        with contextlib.suppress(ValueError):
            cells = table.cells(name)
            columns.append([float(cells[row]) for row in rows])
    columns = [column for column in columns if len(set(column)) > len(column) / 4]
    return random.choice(columns or [[random.random() for _ in rows]])
