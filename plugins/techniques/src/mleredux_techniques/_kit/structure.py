"""How the test was split off: by group, by time, or at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mleredux_techniques._kit.dataset import Dataset, GroupColumn

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = ("_", "-", "/", ":")
MAX_SHARED = 0.02
"""Maximum share of the test's groups that occur in the training table if the split was by group."""
MIN_ROWS_A_GROUP = 1.5
MIN_GROUPS = 4
_DATE = r"^\d{4}[-/.]?\d{2}[-/.]?\d{2}|^\d{1,2}[/.]\d{1,2}[/.]\d{2,4}"


def group_column(dataset: Dataset) -> GroupColumn | None:
    """Find the groups that the split kept together: values that repeat within the training table and (nearly) never
    occur in the test table. Columns of measurements are not groups.
    """
    best: tuple[float, GroupColumn] | None = None
    for candidate in candidates(dataset):
        train, test = candidate.of(dataset.train), candidate.of(dataset.test)
        known, asked = set(train[train != ""]), set(test[test != ""])
        if len(known) < MIN_GROUPS or len(asked) < 2 or len(train) < MIN_ROWS_A_GROUP * len(known):
            continue
        if len(known & asked) > MAX_SHARED * len(asked):
            continue
        if best is None or len(known) < best[0]:  # the coarser grouping contains the finer one
            best = len(known), candidate
    return best[1] if best else None


def candidates(dataset: Dataset) -> list[GroupColumn]:
    """Return columns that could name groups: texts, integers, and their part before a separator."""
    found = []
    for name in (*dataset.ids, *dataset.features):
        values = dataset.train[name].dropna()
        kind = dataset.kinds[name]
        if not len(values) or kind == "boolean" or looks_like_time(dataset.train[name]):
            continue
        if kind == "number" and ((values % 1 != 0).any() or _looks_measured(dataset, name)):
            continue
        found.append(GroupColumn(name))
        if kind == "text":
            head = values.head(1_000)
            found += [
                GroupColumn(name, mark) for mark in SEPARATORS if head.str.contains(mark, regex=False).mean() > 0.95
            ]
    return found


def _looks_measured(dataset: Dataset, name: str) -> bool:
    """Whether integers are a quantity: those of the test are within the training range, and most occur there."""
    train, test = dataset.train[name].dropna(), dataset.test[name].dropna()
    return not len(test) or bool(np.isin(test.unique(), train.unique()).mean() > MAX_SHARED)


def looks_like_time(values: pd.Series[Any]) -> bool:
    """Whether a text column contains dates."""
    if values.dtype.kind in "ifub":
        return False
    known = values.dropna().head(500).astype(str)
    return bool(len(known)) and bool(known.str.contains(_DATE, regex=True).mean() > 0.95)


def in_time(values: pd.Series[Any]) -> pd.Series[Any]:
    """Return dates as seconds since 1970, numbers unchanged, anything else as NaN."""
    import pandas as pd

    if values.dtype.kind in "ifub":
        return values.astype(float)
    moments = pd.to_datetime(values, errors="coerce", utc=True, format="mixed")
    return (moments - pd.Timestamp(0, tz="UTC")).dt.total_seconds()


def time_column(dataset: Dataset) -> str | None:
    """Return the column by which later rows became the test: (nearly) all test rows are later than the training rows.

    Any date column qualifies; numeric columns only if they are named like a time.
    """
    for name in dataset.features:
        if not looks_like_time(dataset.train[name]) and not _named_like_time(name):
            continue
        if dataset.kinds[name] == "boolean":
            continue
        train, test = in_time(dataset.train[name]).dropna(), in_time(dataset.test[name]).dropna()
        if len(train) and len(test) and train.nunique() > 2 and follows(train, test):
            return name
    return None


def follows(train: pd.Series[Any], test: pd.Series[Any]) -> bool:
    """Whether all but 2 % of the test's times are at or after all but 2 % of the training's."""
    return bool(test.quantile(MAX_SHARED) >= train.quantile(1 - MAX_SHARED)) and bool(test.max() > train.max())


def _named_like_time(name: str) -> bool:
    words = name.lower().replace("-", "_").split("_")
    return bool({"time", "timestamp", "date", "day", "week", "month", "year", "hour", "step", "t"} & set(words))


def duplicates(dataset: Dataset) -> tuple[int, int]:
    """Count training rows with the features of an earlier one, and test rows with the features of a training row."""
    import pandas as pd

    if not dataset.features:
        return 0, 0
    features = list(dataset.features)
    train = pd.util.hash_pandas_object(dataset.train[features], index=False)
    test = pd.util.hash_pandas_object(dataset.test[features].astype(dataset.train[features].dtypes), index=False)
    return int(train.duplicated().sum()), int(test.isin(set(train)).sum())
