"""The variants `+debug-N`: a task with a sample of its rows, to try an agent in seconds; scores are not comparable.

At most N training rows and N test rows are kept, always the same ones, stratified by class with at least one row each.
A row, identified by the submission's id columns (or, without any, by its number), is kept or dropped in all tables that
identify it; the same applies to files named after it. All other files are copied completely.
"""

from __future__ import annotations

import csv
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import starmap
from pathlib import Path
from typing import TypeVar

from mleredux.errors import DataError
from mleredux.plugin.experiment import sample_name
from mleredux.plugin.task import Task

REVISION = "3"
"""Part of the version of all samples; incremented whenever the same number of rows would give different files."""
MOST_COPIED = 1 << 30
"""Maximum total size of copied files that are not tables, in bytes."""
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_BOARD = "leaderboard.csv"

Key = tuple[str, ...]
Name = TypeVar("Name", Key, int)


def sample_of(task: Task, rows: int) -> Task:
    """Return the task with a sample of its rows, without medals and leaderboard because scores are not comparable."""
    return task.model_copy(
        update={
            "id": sample_name(task.id, rows),
            "version": f"{task.version}+debug{REVISION}",
            "title": f"{task.title} (debug sample of {rows:,} rows)",
            "prepare": partial(_prepare, base=task, rows=rows),
            "base": task,
            "fetch": None,
            "fetch_leaderboard": None,
            "thresholds": None,
            "leaderboard": None,
            "checksums": {},
            "sets": (),
            "tags": (*task.tags, "debug"),
            "variants": {},
            "note": f"A debug sample of {rows:,} rows: the score is not comparable with scores on {task.id}.",
        }
    )


def _prepare(raw: Path, public: Path, private: Path, *, base: Task, rows: int) -> None:
    """Write a sample of a task's prepared files, which are in `raw`.

    Raises:
        DataError: The training data is not in tables, or the other files are too large.
    """
    sample = _Sample(base, raw, rows)
    if not sample.training:
        raise DataError(
            f"The data of {base.id} can't be sampled: it has no table (CSV or TSV) of training rows.",
            hint="Run the task itself, with a short --time-limit.",
        )
    copied = 0
    for source, target in ((raw / "public", public), (raw / "private", private)):
        for path in _files(source):
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix in _DELIMITERS and path.name != _BOARD:
                sample.write(path, place)
            elif path.name != _BOARD and not sample.drops_file(path):
                copied += path.stat().st_size
                if copied > MOST_COPIED:
                    raise DataError(
                        f"The data of {base.id} can't be sampled: it has more than {MOST_COPIED >> 30} GB "
                        f"besides its tables, such as {path.name}.",
                        hint="Run the task itself, with a short --time-limit.",
                    )
                shutil.copyfile(path, place)


class _Sample:
    """The selection of rows of a task's prepared files.

    Args:
        task: The task.
        folder: Its prepared files.
        rows: Maximum number of rows.

    Attributes:
        training: Public tables with training rows.
    """

    def __init__(self, task: Task, folder: Path, rows: int) -> None:
        self._rows, self._columns = rows, task.submission.id_columns
        self._seed = f"{task.id}:{task.version}:{rows}"
        sample = (folder / "public" / task.submission.sample).resolve() if task.submission.sample else None
        known = sample is not None and sample.suffix in _DELIMITERS and sample.is_file()
        self._sample = sample if known else None
        targets = set(task.submission.target_columns)
        if self._sample is not None:
            targets = targets or set(_header(self._sample)) - set(self._columns)
        self._targets = targets
        tables = [path for path in _files(folder / "public") if path.suffix in _DELIMITERS and path != self._sample]
        self.training = [
            path for path in tables if "train" in path.name.lower() or (targets and targets <= set(_header(path)))
        ]
        self._answers = answers = folder / "private" / task.answers
        tests = [path for path in tables if path not in self.training and "test" in path.name.lower()]
        self._shared = {name for path in tests for name in _header(path)} | set(self._columns)
        """Ids and columns of test tables, which can't be classes."""
        self._by_place: set[Path] = set()
        """Tables whose test rows are identified by their number."""
        self._linked = False
        """Whether test rows can be dropped, in all files that identify them."""
        if self._sample is None or answers.suffix not in _DELIMITERS:
            return
        if not self._columns and len({len(list(self._body(path))) for path in (answers, self._sample, *tests)}) == 1:
            self._by_place = {answers, self._sample, *tests}
        if self._has_ids(answers) and self._has_ids(self._sample):
            self._linked = {*self._keys(answers)} <= {*self._keys(self._sample)}

    @cached_property
    def _test(self) -> dict[Key, bool]:
        """Ids of test rows, and whether they are kept."""
        if not self._linked or self._sample is None:
            return {}
        classes = dict(zip(self._keys(self._answers), self._classes(self._answers), strict=True))
        counts = Counter(self._keys(self._sample))
        return dict.fromkeys(counts, False) | self._chosen(Counter({key: counts[key] for key in classes}), classes)

    @cached_property
    def _train(self) -> dict[Key, bool]:
        """Ids of training rows in the table with the most ids, and whether they are kept."""
        counts = {path: Counter(self._keys(path)) for path in self.training if self._columns and self._has_ids(path)}
        if not counts:
            return {}
        path = max(counts, key=lambda path: len(counts[path]))
        return self._chosen(counts[path], dict(zip(self._keys(path), self._classes(path), strict=True)))

    @cached_property
    def _dropped_names(self) -> set[str]:
        names: dict[bool, set[str]] = {True: set(), False: set()}
        for key, is_kept in (*self._train.items(), *self._test.items()) if len(self._columns) == 1 else ():
            names[is_kept].add(key[0])
        return names[False] - names[True]

    def drops_file(self, path: Path) -> bool:
        """Return whether a file is named after dropped rows."""
        return path.name in self._dropped_names or path.stem in self._dropped_names

    def write(self, path: Path, target: Path) -> None:
        """Write the header and the kept rows of a table."""
        keep = self._keeps(path)
        with _table(path) as rows, target.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            writer = csv.writer(file, delimiter=_DELIMITERS[path.suffix], lineterminator="\n")
            writer.writerow(next(rows, []))
            writer.writerows(row for number, row in enumerate(filter(None, rows)) if keep(number, row))

    def _keeps(self, path: Path) -> Callable[[int, list[str]], bool]:
        if not self._has_ids(path):
            if path not in self.training:
                return lambda _number, _row: True
            chosen = set(self._order(dict(enumerate(self._classes(path))))[: self._rows])
            return lambda number, _row: number in chosen
        ids, key = self._train if path in self.training else self._test, self._key(path)
        return lambda number, row: ids.get(key(number, row), True)

    def _chosen(self, counts: Counter[Key], classes: dict[Key, Key]) -> dict[Key, bool]:
        """Return whether each id is kept: enough ids for the requested number of rows, and at least one."""
        chosen, room = set[Key](), self._rows
        for key in self._order({key: classes.get(key, ()) for key in counts}):
            if not chosen or counts[key] <= room:
                chosen.add(key)
                room -= counts[key]
            if room <= 0:
                break
        return {key: key in chosen for key in counts}

    def _order(self, classes: dict[Name, Key]) -> list[Name]:
        """Return rows in random order; if they have classes, any prefix is stratified."""
        order = list(classes)
        random.Random(self._seed).shuffle(order)
        members: dict[Key, list[Name]] = {}
        for name in order:
            members.setdefault(classes[name], []).append(name)
        if len(members) > self._rows // 2:  # a number, or free text
            return order
        place = {name: (rank > 0, rank / len(same)) for same in members.values() for rank, name in enumerate(same)}
        return sorted(order, key=place.__getitem__)

    def _classes(self, path: Path) -> Iterator[Key]:
        """Yield the target of each row; without target columns, yield the values of columns that test rows do not
        have.
        """
        header = _header(path)
        named = [name for name in header if name in self._targets]
        places = [header.index(name) for name in named or header if name in named or name not in self._shared]
        return (tuple(row[place] for place in places if place < len(row)) for row in self._body(path))

    def _has_ids(self, path: Path) -> bool:
        named = bool(self._columns) and path.is_file() and set(self._columns) <= set(_header(path))
        return named or path in self._by_place

    def _key(self, path: Path) -> Callable[[int, list[str]], Key]:
        """Return a function that identifies a row, given its number and its cells."""
        if not self._columns:
            return lambda number, _row: (str(number),)
        header = _header(path)
        places = [header.index(name) for name in self._columns]
        return lambda _number, row: tuple(row[place] for place in places)

    def _keys(self, path: Path) -> Iterator[Key]:
        return starmap(self._key(path), enumerate(self._body(path)))

    def _body(self, path: Path) -> Iterator[list[str]]:
        with _table(path) as rows:
            next(rows, None)
            yield from filter(None, rows)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.resolve().rglob("*") if path.is_file())


def _header(path: Path) -> list[str]:
    with _table(path) as rows:
        return next(rows, [])


@contextmanager
def _table(path: Path) -> Iterator[Iterator[list[str]]]:
    csv.field_size_limit(1 << 30)
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        yield csv.reader(file, delimiter=_DELIMITERS[path.suffix])
