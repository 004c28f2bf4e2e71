"""The answers, and their relation to the tables and files of the public folder."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd
from mleredux.errors import DataError, file_errors
from mleredux.plugin.task import Task

from mleredux_audit_leaks.inventory import PublicFile
from mleredux_audit_leaks.statistics import Floats, Ints, Labels
from mleredux_audit_leaks.tables import Table, read_tables

MOST_TARGETS = 8
MOST_CLASS_SHARE = 0.5
"""Maximum share of distinct values for which a text target is a class."""
_SUFFIX = (
    r"\.(?:jpe?g|png|tiff?|bmp|gif|dcm|nii|wav|aiff?|mp3|flac|ogg|mp4|avi|npy|npz|h5|mat|csv|tsv|json|txt|xml|parquet"
    r"|feather|bson|dat|bin|gz)$"
)


def normal_ids(column: pd.Series) -> pd.Series:
    """Normalize ids: without folders, file suffix and `.0`."""
    texts = column.astype(str).str.strip()
    sample = texts.head(2000)
    if sample.str.contains("/", regex=False).any():
        texts = texts.str.rsplit("/", n=1).str[-1]
    texts = texts.str.replace(_SUFFIX, "", regex=True, case=False)
    return texts.str.replace(r"^(-?\d+)\.0$", r"\1", regex=True)


def normal_values(column: pd.Series) -> pd.Series:
    """Normalize values: numbers as Python prints them, truth values as 1 and 0."""
    texts = column.astype(str).str.strip()
    numbers = pd.to_numeric(texts, errors="coerce")
    if len(texts) and numbers.notna().mean() > 0.98:
        return numbers.map(lambda value: "" if value != value else f"{value:.10g}")
    if len(texts) and texts.str.lower().isin(["true", "false", ""]).all():
        return texts.str.lower().replace({"true": "1", "false": "0"})
    return texts


@dataclass
class Target:
    """One held-out column.

    Attributes:
        values: Normalized texts of shape (rows,).
        labels: The same values as numbers.
        classes: Code by value, for classes.
    """

    name: str
    values: pd.Series
    labels: Labels
    classes: dict[str, int] = field(default_factory=dict)

    def encode(self, column: pd.Series) -> Floats:
        """Return the values of a column with the same meaning as the target, as numbers; NaN if they are not values of
        the target.
        """
        values = normal_values(column)
        if self.labels.kind == "class":
            return np.asarray(values.map(self.classes).astype(float))
        return np.asarray(pd.to_numeric(values, errors="coerce"), dtype=float)


class Truth:
    """The answers of a task, one row per answer.

    Args:
        task: The task.
        private: The folder of its answers.

    Raises:
        DataError: The answers are not a table.
    """

    def __init__(self, task: Task, private: Path) -> None:
        self.task, base = task, task.base or task
        # The answer to a question about data is a document; what is held out there are the targets of the data.
        self.form = task.submission if task.submission.document is None else base.submission
        ids = set(self.form.id_columns)
        table = _read(task, private / task.answers)
        for path in private.glob("test.*") if table is None or self.form is not task.submission else ():
            held = _read(task, path)
            table = held if held is not None and ids and ids <= set(held.frame.columns) else table
        if table is None:
            raise DataError(
                f"The answers of {task.id} ({task.answers}) are not a table.", hint="The audit supports CSV and JSON."
            )
        self.frame = table.frame.reset_index(drop=True)
        self.cut = table.cut
        self.id_columns = tuple(name for name in self.form.id_columns if name in self.frame)
        wanted = [name for name in self.form.target_columns if name in self.frame]
        self.target_columns = wanted or [name for name in self.frame.columns if name not in self.id_columns]

    def __len__(self) -> int:
        return len(self.frame)

    def is_sample(self, name: str) -> bool:
        """Return whether a public file is a sample submission: the declared one, or a variant of it."""
        last = PurePosixPath(name.replace("!", "/")).name.lower()
        return name == self.task.submission.sample or ("sample" in last and "subm" in last)

    def settle_targets(self, tables: list[Table], notes: list[str]) -> None:
        """Determine the held-out columns if none is declared: those that no public table of the test rows has."""
        if set(self.target_columns) & set(self.form.target_columns):
            return
        public: set[str] = set()
        for table in tables:
            if set(self.id_columns) <= set(table.frame.columns) and not self.is_sample(table.name):
                rows = self.rows_of(table.frame)
                if rows is not None and len(np.unique(rows[rows >= 0])) > 0.5 * len(self.first_rows):
                    public |= set(table.frame.columns)
        hidden = [name for name in self.target_columns if name not in public]
        if hidden and len(hidden) < len(self.target_columns):
            notes.append(f"Held out, by the declaration or the public tables: {', '.join(hidden[:8])}.")
            self.target_columns = hidden

    @cached_property
    def ids(self) -> pd.Index:
        """Return normalized ids; row numbers if the task has no ids."""
        return pd.Index(join_keys(self.frame, self.id_columns)) if self.id_columns else pd.Index(range(len(self)))

    @cached_property
    def first_rows(self) -> pd.Series:
        """Return the row of each id, the first one if the id occurs more than once."""
        rows = pd.Series(np.arange(len(self)), index=self.ids)
        return rows[~rows.index.duplicated()]

    @cached_property
    def targets(self) -> list[Target]:
        """Return the held-out columns; columns that are a one-hot encoding count as one class."""
        names = self.target_columns
        if len(names) > 2:
            numbers = self.frame[names].apply(pd.to_numeric, errors="coerce")
            if numbers.isin([0, 1]).all(axis=None) and (numbers.sum(axis=1) == 1).all():
                return [_target("class", pd.Series(np.array(names)[numbers.to_numpy().argmax(axis=1)]))]
        targets = [_target(name, self.frame[name]) for name in names[:MOST_TARGETS]]
        return [target for target in targets if target.values.nunique() > 1]

    def rows_of_table(self, table: Table) -> Ints | None:
        """Return the rows for a table as `rows_of` does; arrays of floating-point numbers do not identify rows."""
        measured = table.matrix is not None and np.issubdtype(table.matrix.dtype, np.floating)
        return None if measured else self.rows_of(table.frame)

    def rows_of(self, frame: pd.DataFrame) -> Ints | None:
        """Return, for each row of a table, the row of the answers with the same id, or -1; None if the ids do not
        match."""
        if self.id_columns and set(self.id_columns) <= set(frame.columns):
            return self._match(pd.Series(join_keys(frame, self.id_columns)), strict=False)
        if len(self.id_columns) != 1:
            return None
        for name in frame.columns[:40]:
            sample = frame[name].head(3000)
            if sample.nunique() > 0.2 * len(sample) and normal_ids(sample).isin(self.first_rows.index).any():
                rows = self._match(normal_ids(frame[name]), strict=True)
                if rows is not None:
                    return rows
        return None

    def _match(self, keys: pd.Series, *, strict: bool) -> Ints | None:
        rows = self.first_rows.reindex(keys).fillna(-1).to_numpy().astype(np.int64)
        hit = rows[rows >= 0]
        distinct = len(np.unique(hit))
        enough = distinct >= min(8, len(self.first_rows)) and (not strict or distinct >= 0.5 * len(self.first_rows))
        # Numbers may match by accident; if so, most rows of the table match no answers, or the same ones.
        unique = not strict or distinct >= 0.9 * len(hit)
        return rows if enough and unique else None


def _read(task: Task, path: Path) -> Table | None:
    """Return the first table of a private file, if there is one.

    Raises:
        DataError: The file can't be read.
    """
    with file_errors(DataError, f"The answers of {task.id} ({path.name}) can't be read", None, ValueError):
        state = path.stat()
        content = PublicFile(path.name, state.st_size, state.st_mtime, lambda limit: path.read_bytes()[:limit])
        return next(iter(read_tables(content, limit=1 << 29)), None)


def join_keys(frame: pd.DataFrame, columns: tuple[str, ...]) -> pd.Series:
    """Return the ids of rows, each as one text."""
    keys = [normal_ids(frame[name]) for name in columns]
    joined = keys[0]
    for key in keys[1:]:
        joined = joined + "|" + key
    return joined.set_axis(range(len(joined)))


def _target(name: str, column: pd.Series) -> Target:
    values = normal_values(column).reset_index(drop=True)
    distinct = values.nunique()
    numbers = pd.to_numeric(values, errors="coerce")
    if numbers.notna().all() and distinct > min(max(20, 0.02 * len(values)), 200):
        return Target(name, values, Labels("number", numbers.to_numpy(dtype=float)))
    order = values.value_counts(sort=True)
    classes = {str(value): code for code, value in enumerate(sorted(order.index, key=lambda v: (-order[v], str(v))))}
    kind = "class" if distinct <= max(MOST_CLASS_SHARE * len(values), 2) else "text"
    codes = np.asarray(values.map(classes), dtype=np.float64)
    return Target(name, values, Labels(kind, codes), classes)


@dataclass
class Joined:
    """A public table whose rows correspond to rows of the answers.

    Attributes:
        table: The table, limited to rows that match answers.
        rows: The corresponding row of the answers for each row.
        by: How the rows were matched: `id` or `position`.
    """

    table: Table
    rows: Ints
    by: str


@dataclass
class Known:
    """A public table with labels of rows other than the answers."""

    table: Table
    target: Target
    labels: Labels

    @property
    def features(self) -> list[str]:
        """Return the columns that are not the target."""
        return [name for name in self.table.frame.columns if name != self.target.name]


def joined_tables(truth: Truth, tables: list[Table]) -> list[Joined]:
    """Return public tables that match the answers by id or, if they have no ids, by having the same number of rows."""
    joined = []
    for table in tables:
        rows = truth.rows_of_table(table)
        if rows is not None:
            meeting = np.flatnonzero(rows >= 0)
            frame = table.frame.iloc[meeting].reset_index(drop=True)
            matrix = table.matrix if len(meeting) == table.rows else None
            joined.append(Joined(Table(table.name, frame, table.cut, matrix=matrix), rows[meeting], "id"))
        elif (
            table.rows == len(truth)
            and "train" not in table.name.lower()
            and not set(truth.id_columns) & set(table.frame.columns)
        ):
            joined.append(Joined(table, np.arange(len(table.frame)), "position"))
    return joined


def known_tables(truth: Truth, tables: list[Table], joined: list[Joined]) -> list[Known]:
    """Return public tables that have the target's column (or a column of its class names) and are not test tables."""
    met = {joint.table.name: len(joint.rows) / max(len(truth), 1) for joint in joined}
    known = []
    for table in tables:
        if truth.is_sample(table.name) or len(table.frame) < 8:
            continue
        if met.get(table.name, 0) > 0.5 and "train" not in table.name.lower():
            continue
        for target in truth.targets:
            if target.labels.kind == "text":
                continue
            name = target.name if target.name in table.frame else _label_column(table.frame, target)
            if name is None:
                continue
            values = target.encode(table.frame[name])
            usable = np.flatnonzero(np.isfinite(values))
            if len(usable) >= 8:
                frame = table.frame.iloc[usable].reset_index(drop=True).rename(columns={name: target.name})
                known.append(Known(Table(table.name, frame), target, Labels(target.labels.kind, values[usable])))
    return known + _labelled_apart(truth, tables, met)


def _labelled_apart(truth: Truth, tables: list[Table], met: dict[str, float]) -> list[Known]:
    """Return tables whose labels are in a separate array of as many rows, with one column and `label` or `target` in
    its name."""
    known = []
    for labels in tables:
        if labels.frame.shape[1] != 1 or not re.search("label|target", labels.name, re.IGNORECASE):
            continue
        others = [
            other
            for other in tables
            if other.rows == labels.rows and other.frame.shape[1] > 1 and met.get(other.name, 0) <= 0.5
        ]
        for target in truth.targets if len(others) == 1 and "train" in others[0].name.lower() else ():
            values = target.encode(labels.frame.iloc[:, 0])
            count = min(len(values), len(others[0].frame))
            if count >= 8 and target.labels.kind != "text" and np.isfinite(values[:count]).all():
                table = Table(others[0].name, others[0].frame.iloc[:count], matrix=others[0].matrix)
                known.append(Known(table, target, Labels(target.labels.kind, values[:count])))
    return known


def _label_column(frame: pd.DataFrame, target: Target) -> str | None:
    if target.labels.kind != "class" or len(target.classes) < 4:
        return None
    for name in frame.columns[:40]:
        if set(frame[name].head(1000).unique()) and frame[name].head(1000).isin(list(target.classes)).mean() > 0.8:
            return str(name)
    return None


def sides_of(truth: Truth, files: list[PublicFile]) -> dict[str, list[PublicFile]]:
    """Return the files of `train` and `test`, by the names of their folders or, for the test, by their own names."""
    sides: dict[str, list[PublicFile]] = {"train": [], "test": []}
    for file in files:
        folders = "/".join(file.parts[:-1]).lower()
        side = "test" if "test" in folders else "train" if "train" in folders else None
        if side is None and normal_ids(pd.Series([file.parts[-1]]))[0] in truth.first_rows.index:
            side = "test"
        if side:
            sides[side].append(file)
    return sides
