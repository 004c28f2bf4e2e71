"""The data of a technique task in memory, in one form for all competitions, and a cache of results for the latest one.

Naive and strong models are fitted once for many documents.
"""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np
from mleredux.errors import NotApplicable

if TYPE_CHECKING:
    import pandas as pd
    from mleredux.plugin.task import Task

    Frame: TypeAlias = pd.DataFrame
    Series: TypeAlias = pd.Series[Any]
else:
    Frame = Series = Any

Array = np.ndarray[Any, Any]
Result = TypeVar("Result")

MAX_TRAIN_ROWS = 10_000
"""Maximum number of training rows on which strategies are executed."""
MAX_TEST_ROWS = 5_000
Problem = Literal["binary", "multiclass", "regression"]
"""The kind of target: two classes, several classes, or a number."""
Kind = Literal["number", "boolean", "text"]
"""The kind of a column."""


@dataclass(frozen=True)
class GroupColumn:
    """The key of a row's group.

    Attributes:
        column: Its column.
        separator: If set, the group is the text before its first occurrence.
        second: The second column, if a pair of values identifies the group.
        after: Whether the group is the text after the last separator instead.
    """

    column: str
    separator: str | None = None
    second: str | None = None
    after: bool = False

    def of(self, frame: pd.DataFrame) -> pd.Series[str]:
        """Return the group of each row, as text; empty if a column is missing."""
        texts = _texts(frame[self.column])
        if self.second is not None:
            others = _texts(frame[self.second])
            return (texts + "\0" + others).where((texts != "") & (others != ""), "")
        if not self.separator:
            return texts
        return texts.str.rpartition(self.separator)[2] if self.after else texts.str.partition(self.separator)[0]


def _texts(values: Series) -> Series:
    """Return values as texts; numbers that differ only by rounding become equal texts."""
    if values.dtype.kind == "f":
        values = values.map("{:.12g}".format, na_action="ignore")
    return values.astype("string").fillna("").astype(str)


@dataclass(frozen=True)
class Dataset:
    """A training table, and held-out rows with their true labels.

    Attributes:
        task: The base task's id; for planted data, the variant's.
        problem: The problem type of `target`.
        train: Training rows in their original order: ids, features, targets. Texts are `str` objects or NaN, booleans
            are 0.0/1.0/NaN floats, numbers are floats or ints; the index is 0 … n-1.
        test: Held-out rows in the same form, with their true targets.
        target: The column that strategies are evaluated on (the first of several). Classes are texts, spelled as in the
            table (`"True"`, `"0"`, `"cultivar_1"`); numbers are floats.
        targets: All target columns; features never contain any of them.
        outputs: The columns that a submission predicts: targets, or one per class.
        ids: Columns that identify a row; not features.
        features: All other columns, in the table's order.
        kinds: Kind of each id and feature, inferred from the training table.
        group: The key of rows that the split kept together, if any.
        time: The column that puts test rows after training rows, if any.
        falling: Whether that column decreases over time, like a number of days left.
        metric: The base task's metric, with which strategies are evaluated.
        direction: Whether higher or lower values of the metric are better.
        train_rows: Number of rows of the full training table, of which `train` is a sample.
        test_rows: Number of rows of the full test table.
        sample: A sentence describing the sample; empty if all rows are used.
        known_leaks: Leaks that the base task declares: `{"columns": […], "explanation": …}`.
        planted: The truth of a planted variant (`{}` otherwise): `{"kinds": […], …}`.
        thumbnail: The features used to compare images, if the rows describe images.
    """

    task: str
    problem: Problem
    train: pd.DataFrame
    test: pd.DataFrame
    target: str
    targets: tuple[str, ...]
    ids: tuple[str, ...]
    features: tuple[str, ...]
    kinds: dict[str, Kind]
    group: GroupColumn | None = None
    time: str | None = None
    falling: bool = False
    outputs: tuple[str, ...] = ()
    metric: str = ""
    direction: Literal["maximize", "minimize"] = "maximize"
    train_rows: int = 0
    test_rows: int = 0
    sample: str = ""
    planted: dict[str, Any] = field(default_factory=dict)
    known_leaks: list[dict[str, Any]] = field(default_factory=list)
    thumbnail: tuple[str, ...] = ()

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the sorted classes of the training table; empty for numeric targets."""
        return () if self.problem == "regression" else tuple(sorted(self.train[self.target].unique()))

    @property
    def rows(self) -> pd.DataFrame:
        """Return the rows of both tables, training rows first."""
        import pandas as pd

        return pd.concat([self.train, self.test], ignore_index=True)

    def of_kind(self, *kinds: Kind) -> list[str]:
        """Return the features of the given kinds."""
        return [name for name in self.features if self.kinds[name] in kinds]


def refusal(dataset: Dataset, technique: str, why: str, *, planted: bool = False) -> NotApplicable:
    """Return the reason why a technique does not apply to the data.

    Args:
        planted: Whether to hint at a planted variant.
    """
    hint = f"Try {technique}+planted-1@{dataset.task}." if planted else None
    return NotApplicable(f"{technique} does not apply to {dataset.task}: {why}.", hint=hint)


def need_classes(dataset: Dataset, technique: str) -> None:
    """Check that the target is a class.

    Raises:
        NotApplicable: The target is a number.
    """
    if dataset.problem == "regression":
        raise refusal(dataset, technique, f"its target {dataset.target!r} is a number, not a class")


@dataclass(frozen=True)
class Instance:
    """A technique task's data and truth, used to execute a recommendation.

    Attributes:
        dataset: The data, at most 10,000 training rows and 5,000 test rows with their labels.
        truth: The result of `TechniqueSpec.truth` for all rows.
        base: The task that the data belongs to.
    """

    dataset: Dataset
    truth: dict[str, Any]
    base: Task


_FRAMES = ("train", "test")
FILES = ("dataset.json", *(f"{name}.csv.gz" for name in _FRAMES))
"""The files of a dataset in a folder."""
_GZIP = {"method": "gzip", "compresslevel": 6, "mtime": 0}


def save(dataset: Dataset, folder: Path) -> None:
    """Write `dataset.json`, `train.csv.gz` and `test.csv.gz` into a folder; equal data gives equal bytes."""
    meta = {key: value for key, value in vars(dataset).items() if key not in _FRAMES}
    meta["group"] = asdict(dataset.group) if dataset.group else None
    (folder / "dataset.json").write_text(json.dumps(meta, indent=1) + "\n", encoding="utf-8")
    # quote texts, because a bare carriage return would end a row
    options: dict[str, Any] = {"index": False, "lineterminator": "\n", "quoting": csv.QUOTE_NONNUMERIC}
    for name in _FRAMES:
        frame: Frame = getattr(dataset, name)
        frame.to_csv(folder / f"{name}.csv.gz", compression=_GZIP, **options)


def load(folder: Path) -> Dataset:
    """Read a dataset written by `save`; numbers are restored bit for bit."""
    import pandas as pd
    from mleredux_tables import exact_numbers

    meta = json.loads((folder / "dataset.json").read_bytes())
    meta["group"] = GroupColumn(**meta["group"]) if meta["group"] else None
    for name in ("targets", "ids", "features", "outputs", "thumbnail"):
        meta[name] = tuple(meta[name])
    texts = {name: object for name, kind in meta["kinds"].items() if kind == "text"}
    if meta["problem"] != "regression":
        texts |= {meta["target"]: object}
    options: dict[str, Any] = {"dtype": texts, "keep_default_na": False, "na_values": [""], **exact_numbers()}
    return Dataset(**meta, **{name: pd.read_csv(folder / f"{name}.csv.gz", **options) for name in _FRAMES})


class _Memory(threading.local):
    dataset: Dataset | None = None
    known: dict[str, Any] = {}


_memory = _Memory()


def remembered(dataset: Dataset, key: str, find: Callable[[], Result]) -> Result:
    """Return the result of `find`, calling it once per key while the thread's dataset is the same object."""
    if _memory.dataset is not dataset:
        _memory.dataset, _memory.known = dataset, {}
    known = _memory.known  # `find` may switch to another dataset
    if key not in known:
        known[key] = find()
    value: Result = known[key]
    return value
