"""The typical competition as data: a table of labeled rows to split, and files that follow their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from mleredux_competition_mlebench.blocks.contents import Zip
from mleredux_competition_mlebench.blocks.splits import take
from mleredux_competition_mlebench.blocks.tables import filled, one_hot, texts
from mleredux_competition_mlebench.blocks.workspace import Workspace

if TYPE_CHECKING:
    import pandas as pd

PRIVATE_SAMPLE = "../private/sample_submission.csv"
"""Path, relative to the public folder, of an uncompressed sample submission whose public copy is in an archive."""
Columns = str | tuple[str, ...]
FunctionT = TypeVar("FunctionT", bound=Callable[..., None])
Group = str | Callable[[Workspace, "pd.DataFrame"], "pd.Series[Any]"]
"""A column, or a function that returns each row's group (a series with the rows' index)."""


def columns(names: Columns) -> tuple[str, ...]:
    """Return one name or several as a list of names."""
    return (names,) if isinstance(names, str) else tuple(names)


def recipe(
    ids: Columns, targets: Columns, *, answers: str = "test.csv", sample: str | None = "sample_submission.csv"
) -> Callable[[FunctionT], FunctionT]:
    """Return a decorator that describes the files that a function prepares, as a `TableSplit` does.

    Args:
        ids: Columns that identify a row in submissions; `()` if rows are matched by position.
        targets: Columns with the predictions.
        answers: The private file with the answers.
        sample: The public sample submission; `PRIVATE_SAMPLE` if only a packed one is public.
    """

    def declare(prepare: FunctionT) -> FunctionT:
        facts = {"id_columns": columns(ids), "target_columns": columns(targets), "answers": answers, "sample": sample}
        vars(prepare).update(facts)
        return prepare

    return declare


@dataclass(frozen=True, kw_only=True)
class FilesOfRows:
    """Files that go to the same part as their rows.

    Attributes:
        tree: The raw folder, or the raw archive that contains it.
        inside: The folder in the archive to use as its root.
        source: A file's name in the tree, as a pattern over the row's columns (see `texts`).
        train: Public folder for the training rows' files; None omits them.
        test: Public folder for the test rows' files.
        train_name: Pattern of the new name, if it differs from `source`.
        test_name: The same for test rows.
        folders: Whether each row refers to a whole folder.
        zipped: Whether to write zip archives with bare file names instead of the two folders.
    """

    tree: str
    source: str
    train: str | None = "train"
    test: str | None = "test"
    inside: str = ""
    train_name: str | None = None
    test_name: str | None = None
    folders: bool = False
    zipped: bool = False

    def __call__(self, w: Workspace, train: pd.DataFrame, test: pd.DataFrame) -> None:
        """Record the destination of each file."""
        tree = w.tree(self.tree, self.inside)
        for target, rows, name in ((self.train, train, self.train_name), (self.test, test, self.test_name)):
            if target is not None:
                pick = tree.pick_folders if self.folders else tree.pick
                files = pick(texts(rows, self.source), texts(rows, name or self.source))
                w.public(target, Zip(files) if self.zipped else files)


@dataclass(frozen=True, kw_only=True)
class TableSplit:
    """Split one table's rows at random; write train, test without targets, answers and a sample submission.

    Rows are in the order drawn, unless a group defines another order. Outputs set to None are not written.

    Attributes:
        table: The raw CSV.
        archive: The raw archive that contains the table, if any.
        ids: Columns that identify a row in submissions.
        targets: Columns to predict.
        fill: The sample's values: a mapping by column, or a function from the test rows to such a mapping.
        test_size: Share (rounded up) or number of test rows.
        train_size: Share (rounded down) of training rows, if given instead.
        seed: The published seed.
        group: Groups to split instead of rows (see `Workspace.split_groups`): a column, or a function that returns
            groups.
        joined: See `Workspace.split_groups`.
        stratified: Whether to stratify by the first target.
        read: Options of `pandas.read_csv`.
        write: Options of `DataFrame.to_csv`, for all tables.
        before: A function that changes the whole table before the split.
        after: A function that changes both parts (renumbering) before anything else is derived from them.
        train: The public training table.
        test: The public test table.
        test_columns: The test table's columns; None for all but the targets.
        answers: The private table of the test rows.
        answer_columns: The answers' columns; None for all.
        classes: One-hot encodes the only target column in answers and sample.
        gold: A private perfect submission: ids and targets.
        sample: The public sample submission.
        files: Files that follow their rows, or any function `(workspace, train, test)`; given the rows before `after`.
        copies: Raw files copied to public unchanged.
    """

    ids: Columns
    targets: Columns
    fill: Mapping[str, Any] | Callable[[pd.DataFrame], Mapping[str, Any]]
    table: str = "train.csv"
    archive: str = ""
    test_size: float | None = 0.1
    train_size: float | None = None
    seed: int = 0
    group: Group | None = None
    joined: bool = False
    stratified: bool = False
    read: Mapping[str, Any] = field(default_factory=dict)
    write: Mapping[str, Any] = field(default_factory=dict)
    before: Callable[[Workspace, pd.DataFrame], pd.DataFrame] | None = None
    after: Callable[[Workspace, pd.DataFrame, pd.DataFrame], tuple[pd.DataFrame, pd.DataFrame]] | None = None
    train: str | None = "train.csv"
    test: str | None = "test.csv"
    test_columns: Columns | None = None
    answers: str = "test.csv"
    answer_columns: Columns | None = None
    classes: tuple[str, ...] = ()
    gold: str | None = None
    sample: str | None = "sample_submission.csv"
    files: Sequence[Callable[[Workspace, pd.DataFrame, pd.DataFrame], None]] = ()
    copies: tuple[str, ...] = ()

    @property
    def id_columns(self) -> tuple[str, ...]:
        """The columns that identify a row in submissions."""
        return columns(self.ids)

    @property
    def target_columns(self) -> tuple[str, ...]:
        """The columns to predict in submissions."""
        return self.classes or columns(self.targets)

    @property
    def renames(self) -> bool:
        """Whether a secret split gives test rows new ids, as no other file contains ids."""
        return self.after is None and all(isinstance(also, FilesOfRows) for also in self.files)

    def __call__(self, w: Workspace) -> None:
        """Record every file of the preparation."""
        ids, targets = columns(self.ids), columns(self.targets)
        known = () if self.before else (*ids, *targets)
        rows = w.table(self.table, known, archive=self.archive, **self.read)
        rows = self.before(w, rows) if self.before else rows
        if self.group is None:
            labels = rows[targets[0]] if self.stratified else None
            train, test = w.split(rows, self.test_size, self.seed, train_size=self.train_size, stratify=labels)
        else:
            group = self.group(w, rows) if callable(self.group) else self.group
            train, test = w.split_groups(rows, group, self.test_size or 0.1, self.seed, joined=self.joined)
        if w.settings.salt is not None and not self.joined:
            test = take(test, w.shuffled(len(test)))
        for also in self.files:
            also(w, train, test)
        train, test = self.after(w, train, test) if self.after else (train, test)
        hidden = test.drop(columns=list(targets))
        hidden = hidden[list(columns(self.test_columns))] if self.test_columns else hidden
        answers = one_hot(test, ids, targets[0], self.classes) if self.classes else test
        answers = answers[list(columns(self.answer_columns))] if self.answer_columns else answers
        fill = self.fill(test) if callable(self.fill) else self.fill
        if self.train:
            w.public(self.train, train, **self.write)
        if self.test:
            w.public(self.test, hidden, **self.write)
        if self.sample:
            w.public(self.sample, filled(test, ids, fill), **self.write)
        w.private(self.answers, answers, **self.write)
        if self.gold:
            w.private(self.gold, test[[*ids, *targets]], **self.write)
        for name in self.copies:
            w.public(name, w.file(name))
