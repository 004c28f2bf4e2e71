"""Public data with the rows of the test set permuted and their ids exchanged, and the way back for a submission.

The new ids are the old ones in another order, so that their format stays valid; what was known of an id before is wrong
of all but about one. Where ids can't be exchanged everywhere safely, nothing is.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from mleredux.plugin.task import Task

FEWEST_ROWS = 10
_IMAGES = ("png", "jpg", "jpeg", "tif", "tiff", "bmp", "gif", "webp", "dcm", "svg", "pdf", "xyz")
_MEDIA = frozenset(f".{kind}" for kind in (*_IMAGES, "wav", "mp3", "flac", "ogg", "aif", "aiff", "txt", "md"))
_TRAINING = re.compile(r"(?:^|[^a-z])train", re.IGNORECASE)
_DATE = re.compile(r"(?:19|20)\d\d[-_/.]?(?:0[1-9]|1[0-2])")
_MAX_TABLE = 2 << 30
csv.field_size_limit(1 << 24)


class NotPermutable(Exception):
    """Why the ids of a task's test rows can't be exchanged: one sentence."""


@dataclass
class Permutation:
    """A bijection of the test rows' ids.

    Attributes:
        column: The id column.
        ids: The ids in the order of the sample submission.
        new: Old id → new id.
        tables: Tables of the test set, relative to the public folder, with the place of the id column.
        files: Files named by ids: old path → new path.
    """

    column: str
    ids: list[str]
    new: dict[str, str]
    tables: dict[Path, int] = field(default_factory=dict)
    files: dict[Path, Path] = field(default_factory=dict)

    def write(self, public: Path, target: Path, random: Random) -> None:
        """Write the permuted public files into an empty folder; unchanged ones are linked, if they can be."""
        for path in _walk(public):
            place = target / self.files.get(path, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            if path in self.tables:
                self._rewrite(public / path, place, self.tables[path], random)
            else:
                _link(public / path, place)

    def _rewrite(self, source: Path, target: Path, column: int, random: Random) -> None:
        header, rows = _read(source)
        groups: dict[str, list[list[str]]] = {}
        for row in rows:
            groups.setdefault(row[column], []).append(row)
        order = list(groups)
        random.shuffle(order)  # rows of one id keep their order
        changed = [[*row[:column], self.new[key], *row[column + 1 :]] for key in order for row in groups[key]]
        _write(target, header, changed)

    def restore(self, submission: Path, target: Path) -> None:
        """Write a submission for the permuted data as one for the original: its ids, in its order.

        Raises:
            NotPermutable: It does not have the id column, or unknown ids.
        """
        try:
            header, rows = _read(submission)
            column = header.index(self.column)
            old, rank = {new: old for old, new in self.new.items()}, {key: place for place, key in enumerate(self.ids)}
            rows = [[*row[:column], old[row[column]], *row[column + 1 :]] for row in rows]
        except (OSError, ValueError, KeyError, IndexError):
            raise NotPermutable("It submitted no table with the ids of the test rows.") from None
        _write(target, header, sorted(rows, key=lambda row: rank[row[column]]))


def permutation_of(task: Task, public: Path, random: Random) -> Permutation:
    """Find every place where the ids of the test rows occur, and draw new ids.

    Raises:
        NotPermutable: They can't be exchanged safely.
    """
    form = task.submission
    sample = Path(form.sample or "..")
    if form.document is not None or ".." in sample.parts or sample.suffix != ".csv":
        raise NotPermutable("The task has no table as its sample submission.")
    if len(form.id_columns) != 1 or not form.ids_fixed:
        raise NotPermutable("The rows of the submission are not identified by one column of fixed ids.")
    header, rows = _read(public / sample)
    column = header.index(form.id_columns[0])
    ids = list(dict.fromkeys(row[column] for row in rows))
    if len(ids) < FEWEST_ROWS:
        raise NotPermutable(f"There are fewer than {FEWEST_ROWS} test rows.")
    if sum(bool(_DATE.search(key)) for key in ids) > len(ids) / 2:
        raise NotPermutable("The ids contain dates, so they have a meaning that exchanging them would change.")
    shuffled = ids.copy()
    random.shuffle(shuffled)
    found = Permutation(form.id_columns[0], ids, dict(zip(ids, shuffled, strict=True)), {sample: column})
    targets = form.target_columns or tuple(name for name in header if name != found.column)
    known, named = set(ids), set[str]()
    for path in _walk(public):
        if path == sample or any(_TRAINING.search(part) for part in path.parts):
            continue
        if path.suffix == ".csv":
            _inspect_table(public, path, known, targets, found)
        elif path.name in known or path.stem in known:
            if path.suffix.lower() not in _MEDIA:
                raise NotPermutable(f"{path} may hold ids in a form that is not understood.")
            key = path.name if path.name in known else path.stem
            found.files[path] = path.with_name(found.new[key] + path.name[len(key) :])
            named.add(key)
        elif path.suffix.lower() not in _MEDIA:
            raise NotPermutable(f"{path} may hold ids in a form that is not understood.")
    if len(found.tables) == 1 and named != known:
        raise NotPermutable("The ids of the submission are neither those of a table nor the names of files.")
    if len(set(found.files.values())) != len(found.files) or set(found.files.values()) - set(found.files):
        raise NotPermutable("Files of different types are named by the ids.")
    return found


def _inspect_table(public: Path, path: Path, known: set[str], targets: tuple[str, ...], found: Permutation) -> None:
    header, rows = _read(public / path)
    if (
        set(targets) <= set(header)
        and found.column in header
        and {row[header.index(found.column)] for row in rows} - known
    ):
        return  # a training table under another name
    for place, name in enumerate(header):
        values = {row[place] for row in rows}
        inside = len(values & known)
        if name == found.column:
            if values == known:
                _refuse_meaning(header, rows, place)
                found.tables[path] = place
            elif inside:
                raise NotPermutable(f"{path} has a part of the test rows' ids, or others too.")
        elif inside >= max(FEWEST_ROWS, len(known) // 2) and len(known) > 100 and not _is_number(values):
            raise NotPermutable(f"Column {name!r} of {path} seems to refer to the ids.")


def _is_number(values: set[str]) -> bool:
    return all(re.fullmatch(r"-?\d*\.?\d*(?:e[+-]?\d+)?", value, re.IGNORECASE) for value in values)


def _refuse_meaning(header: list[str], rows: list[list[str]], place: int) -> None:
    """Refuse ids that are made of other columns."""
    counts = Counter(
        name
        for row in rows
        for number, name in enumerate(header)
        if number != place and len(row[number]) >= 3 and row[number] in row[place]
    )
    for name, count in counts.items():
        if count > 0.9 * len(rows):
            raise NotPermutable(f"The ids are made of column {name!r}, so exchanging them would change their meaning.")


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    """Read a table.

    Raises:
        NotPermutable: It is no CSV with a header and rows of its length, or too large.
    """
    try:
        if path.stat().st_size > _MAX_TABLE:
            raise NotPermutable(f"{path.name} is too large to be rewritten.")
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = (row for row in csv.reader(file) if row)
    except (OSError, ValueError, csv.Error):
        raise NotPermutable(f"{path.name} is not a CSV file with a header.") from None
    if any(len(row) != len(header) for row in rows):
        raise NotPermutable(f"{path.name} has rows of different lengths.")
    return header, rows


def _write(path: Path, header: list[str], rows: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def _walk(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
