"""`cv_analysis.json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.vocabulary.document import Count, Document, Name, Part
from mleredux_techniques._kit.vocabulary.recommendation import spelled

Splits = Annotated[int, Field(ge=2, le=20)]


class GroupKey(Part):
    """The key of a row's group."""

    column: Name
    separator: Annotated[str, Field(min_length=1, max_length=5)] | None = None
    """The group is the text before the first separator (`_` in `0013_01`); null: the whole text."""
    second: Name | None = None
    """A second column, if the group is a pair of values."""
    after: bool = False
    """Whether the group is the text after the last separator instead."""


class KFold(Part):
    """sklearn.model_selection.KFold or StratifiedKFold, which bins numeric targets into ten quantiles."""

    name: Literal["KFold", "StratifiedKFold"]
    n_splits: Splits = 5
    shuffle: bool = True


class RepeatedKFold(Part):
    """sklearn.model_selection.RepeatedKFold or RepeatedStratifiedKFold."""

    name: Literal["RepeatedKFold", "RepeatedStratifiedKFold"]
    n_splits: Splits = 5
    n_repeats: Annotated[int, Field(ge=2, le=10)] = 3


class GroupKFold(Part):
    """sklearn.model_selection.GroupKFold or StratifiedGroupKFold."""

    name: Literal["GroupKFold", "StratifiedGroupKFold"]
    groups: GroupKey
    n_splits: Splits = 5


class TimeSeriesSplit(Part):
    """sklearn.model_selection.TimeSeriesSplit, on rows ordered by a column."""

    name: Literal["TimeSeriesSplit"]
    time_column: Name
    descending: bool = False
    """Whether rows with the largest values come first."""
    n_splits: Splits = 5
    gap: Annotated[int, Field(ge=0, le=100_000)] = 0


class GroupTimeSeriesSplit(Part):
    """TimeSeriesSplit, without training rows that belong to evaluated groups."""

    name: Literal["GroupTimeSeriesSplit"]
    groups: GroupKey
    time_column: Name
    descending: bool = False
    """Whether rows with the largest values come first."""
    n_splits: Splits = 5
    gap: Annotated[int, Field(ge=0, le=100_000)] = 0


class ShuffleSplit(Part):
    """sklearn.model_selection.ShuffleSplit: a repeatedly drawn holdout."""

    name: Literal["ShuffleSplit"]
    n_splits: Annotated[int, Field(ge=1, le=20)] = 1
    test_size: Annotated[float, Field(gt=0, lt=1)] = 0.2


CvMethod = Annotated[
    KFold | RepeatedKFold | GroupKFold | TimeSeriesSplit | GroupTimeSeriesSplit | ShuffleSplit,
    Field(discriminator="name"),
]


class Groups(Part):
    """Rows that belong together."""

    key: GroupKey
    train_groups: Count
    """Number of distinct groups in the training table."""
    shared_groups: Count
    """Number of groups of the test table that also occur in the training table."""


class TimeOrder(Part):
    """A column that orders the rows in time."""

    column: Name
    test_after_train: bool
    """Whether (nearly) all test rows are later than all training rows."""
    descending: bool = False
    """Whether the largest values come first, like a number of days left, so that the test set has the smallest."""
    within: Name | None = None
    """If test rows are later only than the training rows of their own group: the column of the groups."""


class CvAnalysis(Document):
    """How to estimate the private test score using only the training table."""

    target: Name
    """The column to predict (the first of several)."""
    problem: Literal["binary", "multiclass", "regression"]
    train_rows: Count
    test_rows: Count
    smallest_class: Count | None
    """Number of training rows of the rarest class; null if the target is a number."""
    duplicate_rows: Count
    """Number of training rows whose features (without ids) all equal, or nearly equal, those of an earlier training
    row.
    """
    shared_rows: Count
    """Number of test rows whose features (without ids) all equal, or nearly equal, those of a training row."""
    groups: Groups | None
    """The key of rows that belong together and that the split kept together; null if there is none."""
    time: TimeOrder | None
    """The time order by which the test set was split off; null if there is none."""
    method: CvMethod

    def _agrees_with_itself(self) -> None:
        method = self.method
        if (self.problem == "regression") != (self.smallest_class is None):
            raise ValueError("`smallest_class` must be null if, and only if, the target is a number")
        if isinstance(method, (GroupKFold, GroupTimeSeriesSplit)) and (
            self.groups is None or self.groups.key != method.groups
        ):
            raise ValueError("`method` keeps groups together that are not in `groups`")
        if isinstance(method, (TimeSeriesSplit, GroupTimeSeriesSplit)) and (
            self.time is None or (self.time.column, self.time.descending) != (method.time_column, method.descending)
        ):
            raise ValueError("`method` uses a time column that is not in `time`")
        if self.duplicate_rows >= max(self.train_rows, 1) or self.shared_rows > self.test_rows:
            raise ValueError("`duplicate_rows` or `shared_rows` is larger than the table")
        if self.smallest_class is not None and self.smallest_class > self.train_rows:
            raise ValueError("`smallest_class` is larger than the training table")


def recommend(document: CvAnalysis, dataset: Dataset) -> list[str]:
    """Return the recommendation, one line per item."""
    return [spelled(document.method, {*dataset.ids, *dataset.features})]
