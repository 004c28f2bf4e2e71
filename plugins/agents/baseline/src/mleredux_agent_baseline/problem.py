"""Infer the prediction problem from the tables, the sample submission and the metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mleredux_agent_baseline.files import Facts, NotForBaseline
from mleredux_agent_baseline.metrics import (
    LABEL_METRICS,
    NUMBER_METRICS,
    ORDINAL_METRICS,
    PROBABILITY_METRICS,
    Array,
)
from mleredux_agent_baseline.tables import Tables, id_columns

FEW_CLASSES = 20
"""Integers with at most this many values are treated as classes, unless the metric decides."""
JOINT_ABOVE = 8
"""If there are more numeric targets, one model fits all of them."""


@dataclass
class Head:
    """A target, or several targets that are predicted together.

    Attributes:
        columns: Columns of the submission that it fills.
        y: The targets: class codes of shape (rows,), or numbers of shape (rows,) or (rows, columns).
        classes: The classes in the order of their codes; empty for numeric targets.
        form: The form of the submission: `label`, `probability` or `value`.
        ordinal: Whether the classes are ordered.
    """

    columns: list[str]
    y: Array
    classes: list[Any]
    form: str
    ordinal: bool = False

    @property
    def name(self) -> str:
        """The name for logs."""
        return self.columns[0] if len(self.columns) == 1 else f"{self.columns[0]} … {self.columns[-1]}"


@dataclass
class Problem:
    """The targets, and the feature columns.

    Attributes:
        rows: Positions of training rows whose targets are all known; `Head.y` contains only these rows.
        features: Columns of both tables, except ids and targets.
    """

    ids: list[str]
    heads: list[Head]
    rows: Array
    features: list[str]


def infer(tables: Tables, facts: Facts) -> Problem:
    """Infer ids, targets, their kinds and the form of the submission.

    Raises:
        NotForBaseline: The targets can't be found in the training table.
    """
    train, test, sample = tables.train, tables.test, tables.sample
    ids = id_columns(sample, facts)
    targets = [name for name in (facts.target_columns or sample.columns) if name in sample.columns and name not in ids]
    known = [name for name in targets if name in train.columns]
    if known and (len(known) == len(targets) or len(targets) == 1 or len(known) > 1):
        used = known
        rows = np.flatnonzero(train[known].notna().all(axis=1))
        values = train[known].iloc[rows]
        heads = _one_hot_head(values) or _heads(values, known, sample, facts)
    else:
        label, mapping = _label_column(train, test, targets, ids)
        used = [label]
        rows = np.flatnonzero(train[label].notna())
        column = train[label].iloc[rows]
        if mapping:
            codes = pd.Categorical(column.astype(str), categories=list(mapping.values())).codes
            heads = [Head(list(mapping), np.asarray(codes, dtype=int), list(mapping.values()), "probability")]
        else:
            heads = _heads(column.to_frame(targets[0]), targets[:1], sample, facts)
    return Problem(ids, heads, rows, _features(train, test, ids, used))


def _heads(values: pd.DataFrame, targets: list[str], sample: pd.DataFrame, facts: Facts) -> list[Head]:
    heads = [_head(values[name], name, sample[name], facts) for name in targets]
    if len(heads) > JOINT_ABOVE and all(head.form == "value" for head in heads):
        return [Head(targets, np.column_stack([head.y for head in heads]), [], "value")]
    return heads


def _head(values: pd.Series[Any], name: str, sample: pd.Series[Any], facts: Facts) -> Head:
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if not _are_classes(values, numeric, facts.metric, sample):
        return Head([name], values.to_numpy(dtype=float), [], "value")
    if numeric and (values == values.round()).all():
        values = values.astype("int64")
    codes, classes = pd.factorize(values, sort=True)
    as_label = len(classes) != 2 or facts.metric in LABEL_METRICS
    if not as_label and facts.metric not in PROBABILITY_METRICS:
        as_label = not _has_fractions(sample)
    labels = [value.item() if isinstance(value, np.generic) else value for value in classes]
    return Head([name], codes, labels, "label" if as_label else "probability", facts.metric in ORDINAL_METRICS)


def _are_classes(values: pd.Series[Any], numeric: bool, metric: str, sample: pd.Series[Any]) -> bool:
    if not numeric:
        return True
    if metric in NUMBER_METRICS:
        return False
    whole = bool((values == values.round()).all())
    if metric in LABEL_METRICS:
        return whole
    few = whole and values.nunique() <= FEW_CLASSES
    if metric in PROBABILITY_METRICS:
        return few
    return few and (values.nunique() == 2 or not _has_fractions(sample))


def _has_fractions(sample: pd.Series[Any]) -> bool:
    return bool(pd.api.types.is_float_dtype(sample) and (sample.dropna() != sample.dropna().round()).any())


def _one_hot_head(values: pd.DataFrame) -> list[Head]:
    """Return one head with many classes if the targets are one-hot encoded, else an empty list."""
    if values.shape[1] < 3 or not values.isin([0, 1]).all(axis=None) or not (values.sum(axis=1) == 1).all():
        return []
    names = [str(name) for name in values.columns]
    return [Head(names, values.to_numpy(dtype=int).argmax(axis=1), names, "probability")]


def _label_column(
    train: pd.DataFrame, test: pd.DataFrame, targets: list[str], ids: list[str]
) -> tuple[str, dict[str, str]]:
    """Return the training column whose classes are columns of the sample, or the only one that the test table lacks.

    Returns:
        Its name, and a mapping of submission columns to classes (as text); the mapping is empty if the column is the
        target under another name.
    """
    own = [name for name in train.columns if name not in test.columns and name not in ids]
    for name in own or [column for column in train.columns if column not in ids]:
        values = sorted(train[name].dropna().astype(str).unique(), key=len, reverse=True)
        if 2 <= len(values) <= len(targets):
            mapping = {target: value for target in targets if (value := _class_of(target, values)) is not None}
            if set(mapping.values()) == set(values) and len(mapping) == len(values):
                return name, mapping
    if len(targets) == 1 and len(own) == 1:
        return own[0], {}
    raise NotForBaseline(f"the training table has no column for {', '.join(targets[:5])}")


def _class_of(target: str, values: list[str]) -> str | None:
    """Return the class that a submission column represents: its name, or the end of its name (`Status_C`)."""
    if target in values:
        return target
    return next(
        (value for value in values if target.lower().endswith(("_" + value.lower(), " " + value.lower()))), None
    )


def _features(train: pd.DataFrame, test: pd.DataFrame, ids: list[str], targets: list[str]) -> list[str]:
    shared = [name for name in test.columns if name in train.columns and name not in targets]
    useful = [name for name in shared if train[name].nunique(dropna=False) > 1]
    kept = [name for name in useful if not _names_rows(train[name], name, name in ids)]
    return [str(name) for name in kept]


def _names_rows(values: pd.Series[Any], name: str, is_id: bool) -> bool:
    """Return whether a column only identifies rows: an id that is not text."""
    if not (is_id or name.lower() in ("id", "index", "unnamed: 0", "row_id")):
        return False
    return not is_text(values)


def is_text(values: pd.Series[Any]) -> bool:
    """Return whether a column contains sentences: three words or more on average."""
    if pd.api.types.is_numeric_dtype(values) or not len(values):
        return False
    some = values.dropna().astype(str).head(1000)
    return bool(len(some) and some.str.count(r"\s+").mean() >= 2)
