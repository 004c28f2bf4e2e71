"""Cross-validation methods, executed with scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Array, Frame, GroupColumn, Series
from mleredux_techniques._kit.data.structure import in_time
from mleredux_techniques.cv import document as forms

Fold = tuple[Array, Array]

QUANTILES = 10
"""Number of quantiles by which numeric targets are stratified."""


class CannotSplit(ValueError):
    """The method can't be executed on these rows; the message states the reason."""


def folds(method: forms.CvMethod, frame: Frame, target: Array, *, classes: bool, seed: int) -> list[Fold]:
    """Return row numbers for training and evaluation in each fold.

    Args:
        frame: The rows in the table's order.
        target: Class codes, or numbers.
        classes: Whether `target` contains class codes.

    Raises:
        CannotSplit: A column is missing, or there are too few rows or groups.
    """
    tool, order, strata, groups = _splitter(method, frame, target, classes, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes rarer than folds
        try:
            parts = list(tool.split(np.zeros(len(order)), strata, groups))
        except ValueError as error:
            raise CannotSplit(f"{method.name} can't split these rows: {error}") from error
    if isinstance(method, forms.GroupTimeSeriesSplit):
        groups = _groups(frame, method)
        own = [np.isin(groups[order[rest]], groups[order[held]]) for rest, held in parts]
        parts = [(rest[~same], held) for (rest, held), same in zip(parts, own, strict=True)]
    if any(len(rest) < 2 for rest, _held in parts):
        raise CannotSplit(f"{method.name} creates folds without training rows.")
    return [(order[rest], order[held]) for rest, held in parts if len(held)]


def _splitter(
    method: forms.CvMethod, frame: Frame, target: Array, classes: bool, seed: int
) -> tuple[Any, Array, Array, Array | None]:
    """Return scikit-learn's splitter, the rows in the order it expects, their strata, and their groups, if any."""
    from sklearn import model_selection

    options = method.model_dump(exclude={"name", "groups", "time_column", "descending"})
    order, groups = np.arange(len(frame)), None
    ranks = np.argsort(np.argsort(target, kind="stable"), kind="stable")
    strata = target if classes else np.asarray(ranks * QUANTILES // max(len(target), 1))
    name = method.name
    if isinstance(method, (forms.TimeSeriesSplit, forms.GroupTimeSeriesSplit)):
        name = "TimeSeriesSplit"
        order = _in_time(_column(frame, method.time_column), method.descending)
    elif isinstance(method, forms.GroupKFold):
        groups = _groups(frame, method)
        if name == "StratifiedGroupKFold":
            options |= {"shuffle": True, "random_state": seed}
    elif getattr(method, "shuffle", True):
        options["random_state"] = seed
    return getattr(model_selection, name)(**options), order, strata, groups


def _groups(frame: Frame, method: forms.GroupKFold | forms.GroupTimeSeriesSplit) -> Array:
    key = GroupColumn(**method.groups.model_dump())
    for name in (key.column, key.second):
        if name is not None:
            _column(frame, name)
    return key.of(frame).to_numpy(dtype=str)


def _column(frame: Frame, name: str) -> Series:
    if name not in frame.columns:
        raise CannotSplit(f"There is no column {name!r} to split by.")
    return frame[name]


def _in_time(values: Series, descending: bool) -> Array:
    moments = in_time(values).to_numpy(dtype=float)
    if np.isnan(moments).mean() > 0.5:
        raise CannotSplit(f"The column {values.name!r} contains neither times nor numbers to order the rows by.")
    return np.argsort(-moments if descending else moments, kind="stable")
