"""Permute the ids of the test set in public data, and map submissions for it back to the original ids.

Ids keep their positions in all tables and in names of files and folders, but the data of an id is moved to another id.
This preserves relations among data that share ids or an order, while prior knowledge about ids or positions is wrong
for all but about one of them. Meaningful parts of an id are kept: ids are exchanged only among rows that share these
parts. Ids with dates stay with their rows, and every date is shifted by 28 years, after which the calendar repeats. If
ids cannot be exchanged safely everywhere, none are exchanged.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from random import Random
from statistics import StatisticsError, correlation

from mleredux.plugin.task import Task

from mleredux_artifact_notes.tables import KINDS, NotPermutable, Table, is_training, perturbed, read_table

__all__ = ["NotPermutable", "Permutation", "permutation_of"]

FEWEST_ROWS = 10
MOST_ROWS = 1000
"""Maximum number of rows whose order is examined."""
YEARS = 28
_IMAGES = ("png", "jpg", "jpeg", "tif", "tiff", "bmp", "gif", "webp", "dcm", "svg", "pdf", "xyz")
_MEDIA = frozenset(f".{kind}" for kind in (*_IMAGES, "wav", "mp3", "flac", "ogg", "aif", "aiff", "txt", "md"))
_WORD = re.compile(r"[^\W_]+")
_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)(?=[-_/.]?(?:0[1-9]|1[0-2]))")
_YEAR = re.compile(r"((?:19|20)\d\d)(?:\.0)?")
Key = tuple[str, ...]


@dataclass
class Permutation:
    """A bijection of the test rows' ids.

    Attributes:
        columns: The id columns.
        ids: The ids in the order of the sample submission.
        new: New id by old id.
        tables: Tables with ids of test rows, relative to the public folder, with the indices of the id columns.
        naming: The same tables, with the indices of other columns whose cells contain the id of their row.
        files: New path by old path, for files named by ids.
        years: Number of years by which all dates are shifted.
        dated: Tables with dates, with the indices of the date columns.
        doubts: Possible meanings of ids or order that are not accounted for, one sentence each.
    """

    columns: tuple[str, ...]
    ids: list[Key]
    new: dict[Key, Key]
    tables: dict[Path, list[int]] = field(default_factory=dict)
    naming: dict[Path, list[int]] = field(default_factory=dict)
    files: dict[Path, Path] = field(default_factory=dict)
    years: int = 0
    dated: dict[Path, list[int]] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)

    def write(self, public: Path, target: Path, nudge: Random | None = None) -> None:
        """Write the permuted public files into an empty folder; unchanged files are linked if possible.

        Args:
            nudge: If set, slightly changes decimal numbers of the test rows, barely beyond their last digit.
        """
        for path in _walk(public):
            place = target / self.files.get(path, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            if path in self.tables or path in self.dated:
                self._rewrite(path, read_table(public / path), place, nudge)
            else:
                _link(public / path, place)

    def _rewrite(self, path: Path, table: Table, target: Path, nudge: Random | None) -> None:
        order = list(range(len(table.rows)))
        changed = {place: [_moved(row[place], self.years) for row in table.rows] for place in self.dated.get(path, ())}
        if places := self.tables.get(path):
            keys = table.keys(places)
            groups: dict[Key, list[int]] = {}
            for number, key in enumerate(keys):
                groups.setdefault(key, []).append(number)
            if len(list(groupby(keys))) == len(groups):  # otherwise the rows are not in the order of the ids
                origin = {new: old for old, new in self.new.items()}
                order = [number for key in groups for number in groups.get(origin.get(key, key), groups[key])]
            renamed = [self.new.get(key, key) for key in keys]
            changed |= {place: [key[part] for key in renamed] for part, place in enumerate(places)}
            for place in self.naming.get(path, ()):
                rows = zip(keys, renamed, table.rows, strict=True)
                changed[place] = [new[0].join(_word(old).split(row[place])) for old, new, row in rows]
            for place in set(range(len(table.header) if nudge else 0)) - changed.keys():
                cells = [row[place] if key in self.new else "" for key, row in zip(keys, table.rows, strict=True)]
                near = perturbed(cells, nudge or Random())
                changed[place] = [new or row[place] for new, row in zip(near, table.rows, strict=True)]
        table.write(target, order, changed)

    def restore(self, submission: Path, target: Path) -> None:
        """Write a submission for the permuted data with the original ids and in their order.

        Raises:
            NotPermutable: The submission lacks id columns, or has unknown ids.
        """
        try:
            table = read_table(submission)
            places = [table.header.index(name) for name in self.columns]
            old, rank = {new: old for old, new in self.new.items()}, {key: place for place, key in enumerate(self.ids)}
            keys = [old[key] for key in table.keys(places)]
        except (NotPermutable, ValueError, KeyError):
            raise NotPermutable("Its submission is not a table with the ids of the test rows.") from None
        order = sorted(range(len(keys)), key=lambda number: rank[keys[number]])
        table.write(target, order, {place: [key[part] for key in keys] for part, place in enumerate(places)})


def permutation_of(task: Task, public: Path, random: Random) -> Permutation:
    """Find every place where the ids of the test rows occur, and draw new ids.

    Raises:
        NotPermutable: The ids cannot be exchanged safely.
    """
    form = task.submission
    sample = Path(form.sample or "..")
    if form.document is not None or ".." in sample.parts or sample.suffix != ".csv":
        raise NotPermutable("The task's sample submission is not a table.")
    if not form.id_columns or not form.ids_fixed:
        raise NotPermutable("The rows of the submission are not identified by fixed ids.")
    table = read_table(public / sample)
    places = [table.header.index(name) for name in form.id_columns]
    ids = list(dict.fromkeys(table.keys(places)))
    if len(ids) < FEWEST_ROWS:
        raise NotPermutable(f"There are fewer than {FEWEST_ROWS} test rows.")
    permutation = Permutation(tuple(form.id_columns), ids, {}, {sample: places})
    targets = form.target_columns or tuple(name for name in table.header if name not in permutation.columns)
    dated = sum(any(_DATE.search(part) for part in key) for key in ids) > len(ids) / 2
    tables = {
        path: read_table(public / path)
        for path in _walk(public)
        if path.suffix in KINDS and (dated or len(places) > 1 or not is_training(path))
    }
    if dated:
        _move_dates(permutation, tables, random)
    fixed = _find_tables(permutation, tables, sample, targets)
    if not permutation.years:
        permutation.new = _exchanged(ids, fixed, random)
        _record_ordered_tables(permutation, tables)
    _find_files(permutation, public)
    return permutation


def _move_dates(permutation: Permutation, tables: dict[Path, Table], random: Random) -> None:
    """Draw the number of years by which dates are shifted, and find the columns with dates."""
    for path, table in tables.items():
        for place, name in enumerate(table.header):
            cells = [row[place] for row in table.rows if row[place]]
            dates = sum(bool(_DATE.search(cell)) for cell in cells)
            year = name.lower() == "year" and all(map(_YEAR.fullmatch, cells))
            if cells and (year or (dates > len(cells) / 2 and not _plain_numbers(cells))):
                permutation.dated.setdefault(path, []).append(place)
    years = [
        int(match[1])
        for path, places in permutation.dated.items()
        for row in tables[path].rows
        for place in places
        for match in (*_DATE.finditer(row[place]), *filter(None, [_YEAR.fullmatch(row[place])]))
    ]
    possible = [step for step in (-YEARS, YEARS) if all(1901 <= year + step <= 2099 for year in years)]
    if not possible:
        raise NotPermutable("The ids contain dates whose years can't be shifted.")
    permutation.years = random.choice(possible)
    permutation.new = {key: tuple(_moved(part, permutation.years) for part in key) for key in permutation.ids}
    if any(old == new for old, new in permutation.new.items()):
        raise NotPermutable("Some ids contain dates, and others do not.")


def _moved(cell: str, years: int) -> str:
    if match := _YEAR.fullmatch(cell):
        return cell.replace(match[1], str(int(match[1]) + years))
    return _DATE.sub(lambda match: str(int(match[1]) + years), cell)


def _plain_numbers(cells: Iterable[str]) -> bool:
    """Return whether cells are numbers that merely resemble dates, such as 201234.5."""
    return any("." in cell for cell in cells) and _is_number(cells)


def _find_tables(
    permutation: Permutation, tables: dict[Path, Table], sample: Path, targets: Sequence[str]
) -> dict[Key, list[str]]:
    """Record the tables that contain the ids; return, by id, the cells of which ids are composed, which must stay the
    same."""
    known = set(permutation.ids)
    single = {key[0] for key in known} if len(permutation.columns) == 1 else set[str]()
    fixed: dict[Key, list[str]] = {key: [] for key in permutation.ids}
    for path, table in tables.items():
        places = [table.header.index(name) for name in permutation.columns if name in table.header]
        complete = len(places) == len(permutation.columns)
        keys = table.keys(places) if complete else []
        training = is_training(path) or (set(targets) <= set(table.header) and complete and bool(set(keys) - known))
        if path == sample:
            continue
        if training or (places and not complete):
            _keep_shared(permutation, table, fixed)
            continue
        if complete and known <= set(keys):
            permutation.tables[path] = places
            permutation.naming[path] = [
                place
                for place in range(len(table.header) if single else 0)
                if place not in places
                and not _is_number(row[place] for row in table.rows)
                and all(_word(key).search(row[place]) for key, row in zip(keys, table.rows, strict=True))
            ]
            rows = dict(zip(keys, table.rows, strict=True))
            _keep_parts(table, [*places, *permutation.naming[path]], rows, fixed)
        elif complete and known & set(keys):
            raise NotPermutable(f"{path} contains parts of the test rows' ids.")
        for place, name in enumerate(table.header):
            cells = {row[place] for row in table.rows}
            inside = len(cells & single) if place not in (*places, *permutation.naming.get(path, ())) else 0
            if inside >= max(FEWEST_ROWS, len(known) // 2):
                if len(known) > 100 and not _is_number(cells):
                    raise NotPermutable(f"Column {name!r} of {path} seems to refer to the ids.")
                permutation.doubts.append(f"Column {name!r} of {path} may refer to the ids.")
    return fixed


def _keep_shared(permutation: Permutation, table: Table, fixed: dict[Key, list[str]]) -> None:
    """Keep the parts of ids that also occur in other tables, where they are meaningful, such as a shop."""
    for part, name in enumerate(permutation.columns):
        if len(permutation.columns) > 1 and name in table.header:
            place = table.header.index(name)
            cells = {row[place] for row in table.rows}
            if 2 * sum(key[part] in cells for key in permutation.ids) > len(permutation.ids):
                for key in permutation.ids:
                    fixed[key].append(f"{part}={key[part]}")


def _keep_parts(table: Table, places: list[int], rows: dict[Key, list[str]], fixed: dict[Key, list[str]]) -> None:
    """Keep the cells of other columns of which the ids are composed."""
    for number in range(len(table.header)):
        if number in places:
            continue
        parts = sum(len(rows[key][number]) >= 3 and any(rows[key][number] in part for part in key) for key in fixed)
        if parts > 0.9 * len(fixed):
            for key in fixed:
                fixed[key].append(f"{table.header[number]}={rows[key][number]}")


def _exchanged(ids: list[Key], fixed: dict[Key, list[str]], random: Random) -> dict[Key, Key]:
    """Return new ids: the old ones in another order, exchanged among those with the same kept parts."""
    groups: dict[Key, list[Key]] = {}
    for key in ids:
        groups.setdefault(tuple(fixed[key]), []).append(key)
    new: dict[Key, Key] = {}
    for group in groups.values():
        shuffled = group.copy()
        random.shuffle(shuffled)
        new |= dict(zip(group, shuffled, strict=True))
    if sum(len(group) for group in groups.values() if len(group) < FEWEST_ROWS) > len(ids) / 10:
        raise NotPermutable(
            "The ids contain values that distinguish the rows, so exchanging them would change their meaning."
        )
    return new


def _record_ordered_tables(permutation: Permutation, tables: dict[Path, Table]) -> None:
    """Record tables whose row order may be meaningful, as in a time series, and ids with parts that may be
    meaningful.
    """
    groups = {str([_WORD.findall(part)[:-1] for part in key]) for key in permutation.ids}
    if 1 < len(groups) < len(permutation.ids) / 2:
        permutation.doubts.append("Parts of the ids may be meaningful.")
    for path, places in permutation.tables.items():
        others = set(range(len(tables[path].header))) - {*places, *permutation.naming.get(path, ())}
        if _is_series(tables[path].rows[:MOST_ROWS], others):
            permutation.doubts.append(f"The order of the rows of {path} may be meaningful.")


def find_id_dependence(task: Task, public: Path) -> list[str]:
    """Return a sentence if the data depends on the order of the ids, for example because they were assigned in order of
    time.
    """
    for path in _walk(public):
        table = read_table(public / path) if path.suffix in KINDS else Table([], [])
        if str(path) != task.submission.sample and set(task.submission.id_columns) <= set(table.header):
            places = [table.header.index(name) for name in task.submission.id_columns]
            rows = table.rows[:: len(table.rows) // MOST_ROWS + 1]
            rows.sort(key=lambda row: [_as_number(row[place]) for place in places])
            if _is_series(rows, set(range(len(table.header))) - set(places)):
                return [f"The order of the ids of {path} may be meaningful."]
    return []


def _is_series(rows: list[list[str]], places: Iterable[int]) -> bool:
    """Return whether some columns have values similar to those of neighboring rows."""
    for place in places:
        cells = [row[place] for row in rows]
        ranks = {cell: rank for rank, cell in enumerate(sorted(set(cells), key=_as_number))}
        column = [ranks[cell] for cell in cells]
        with contextlib.suppress(StatisticsError):  # a constant column
            if abs(correlation(column[1:], column[:-1])) > max(0.3, 4 / math.sqrt(len(column))):
                return True
    return False


def _word(key: Key) -> re.Pattern[str]:
    """Return a pattern that matches an id within a cell, such as the name of a file."""
    return re.compile(rf"(?<![^\W_]){re.escape(key[0])}(?![^\W_])")


def _as_number(cell: str) -> tuple[float, str]:
    try:
        return float(cell), cell
    except ValueError:
        return math.inf, cell


def _find_files(permuted: Permutation, public: Path) -> None:
    """Record the files that are named by ids or in folders named by ids."""
    single = {key[0]: new[0] for key, new in permuted.new.items()} if len(permuted.columns) == 1 else dict[str, str]()
    named, mentioned = set[str](), set[str]()
    for path in _walk(public):
        if path.suffix in KINDS or is_training(path):
            continue
        if path.suffix.lower() not in _MEDIA:
            raise NotPermutable(f"{path} may contain ids in an unknown format.")
        keys = [part if part in single else part[: len(part) - len(Path(part).suffix)] for part in path.parts]
        pairs = zip(keys, path.parts, strict=True)
        permuted.files[path] = Path(*(single.get(key, key) + part[len(key) :] for key, part in pairs))
        named |= single.keys() & keys
        mentioned |= single.keys() & _WORD.findall(str(path))
    if mentioned - named:
        permuted.doubts.append("File names may contain ids.")
    if len(permuted.tables) == 1 and named != set(single):
        raise NotPermutable("The submission's ids are neither the ids of a table nor file names.")
    new_names = set(permuted.files.values())
    if len(new_names) != len(permuted.files) or (not permuted.years and new_names != set(permuted.files)):
        raise NotPermutable("The ids are names of files of different types.")


def _is_number(values: Iterable[str]) -> bool:
    return all(re.fullmatch(r"-?\d*\.?\d*(?:e[+-]?\d+)?", value, re.IGNORECASE) for value in values)


def _walk(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
