"""Cross-validation methods, carried out: names and parameters as in scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mleredux_techniques.dataset import GroupColumn
from mleredux_techniques.efficacy.splits import assign_folds
from mleredux_techniques.schemas.cv import (
    CvMethod,
    GroupKFold,
    KFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)
from mleredux_techniques.structure import in_time

if TYPE_CHECKING:
    import pandas as pd

Array = np.ndarray[Any, Any]
Fold = tuple[Array, Array]

QUANTILES = 10
"""A target that is a number is stratified by so many quantiles."""


class CannotSplit(ValueError):
    """The method can't be carried out on these rows; says why."""


def folds(method: CvMethod, frame: pd.DataFrame, target: Array, *, classes: bool, seed: int) -> list[Fold]:
    """Row numbers to learn from and to estimate by, for each fold.

    Args:
        frame: The rows, in the table's order.
        target: Class codes, or numbers.
        classes: Whether these are classes.

    Raises:
        CannotSplit: A column that it names is not there, or there are too few rows or groups.
    """
    rows = len(frame)
    if isinstance(method, TimeSeriesSplit):
        return _in_time(method, _column(frame, method.time_column))
    if isinstance(method, ShuffleSplit):
        held = max(1, int(np.ceil(method.test_size * rows)))
        if held >= rows:
            raise CannotSplit("ShuffleSplit would hold out every row.")
        orders = [np.random.default_rng([seed, turn]).permutation(rows) for turn in range(method.n_splits)]
        return [(np.sort(order[held:]), np.sort(order[:held])) for order in orders]
    if method.n_splits > rows:
        raise CannotSplit(f"{method.name} needs at least {method.n_splits} rows.")
    if isinstance(method, GroupKFold | StratifiedGroupKFold):
        _column(frame, method.groups.column)
        groups = GroupColumn(method.groups.column, method.groups.separator).of(frame).to_numpy(dtype=str)
        return _by_group(method, groups, _strata(target, classes), seed)
    strata = np.zeros(rows, dtype=int) if isinstance(method, KFold | RepeatedKFold) else _strata(target, classes)
    if isinstance(method, KFold | StratifiedKFold) and not method.shuffle:
        return _pairs(_unshuffled(strata, method.n_splits))
    repeats = method.n_repeats if isinstance(method, RepeatedKFold | RepeatedStratifiedKFold) else 1
    found = [assign_folds(strata, None, method.n_splits, seed=seed * 100 + turn) for turn in range(repeats)]
    return [pair for assigned in found for pair in _pairs(assigned)]


def _column(frame: pd.DataFrame, name: str) -> pd.Series[Any]:
    if name not in frame.columns:
        raise CannotSplit(f"There is no column {name!r} to split by.")
    return frame[name]


def _strata(target: Array, classes: bool) -> Array:
    if classes:
        return target
    ranks = np.argsort(np.argsort(target, kind="stable"), kind="stable")
    return np.asarray(ranks * QUANTILES // max(len(target), 1))


def _pairs(assigned: Array) -> list[Fold]:
    numbers = np.unique(assigned)
    return [(np.flatnonzero(assigned != fold), np.flatnonzero(assigned == fold)) for fold in numbers]


def _unshuffled(strata: Array, count: int) -> Array:
    """Blocks of rows in the table's order, within each stratum."""
    assigned = np.zeros(len(strata), dtype=int)
    for stratum in np.unique(strata):
        rows = np.flatnonzero(strata == stratum)
        assigned[rows] = np.arange(len(rows)) * count // len(rows)
    return assigned


def _by_group(method: GroupKFold | StratifiedGroupKFold, groups: Array, strata: Array, seed: int) -> list[Fold]:
    if len(np.unique(groups)) < method.n_splits:
        raise CannotSplit(f"{method.name} has {method.n_splits} folds, but there are fewer groups.")
    if isinstance(method, GroupKFold):
        return _pairs(assign_folds(strata, groups, method.n_splits, seed=seed))
    import warnings

    from sklearn import model_selection

    tool = model_selection.StratifiedGroupKFold(method.n_splits, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes rarer than folds
        try:
            found = list(tool.split(np.zeros(len(groups)), strata, groups))
        except ValueError as error:
            raise CannotSplit(f"StratifiedGroupKFold can't split these rows: {error}.") from error
    return [(np.asarray(rest), np.asarray(held)) for rest, held in found if len(rest) and len(held)]


def _in_time(method: TimeSeriesSplit, values: pd.Series[Any]) -> list[Fold]:
    moments = in_time(values).to_numpy(dtype=float)
    if np.isnan(moments).mean() > 0.5:
        raise CannotSplit(f"The column {values.name!r} holds no times and no numbers to order the rows by.")
    order = np.argsort(moments, kind="stable")
    size = len(order) // (method.n_splits + 1)
    starts = [len(order) - size * left for left in range(method.n_splits, 0, -1)]
    found = [(order[: max(start - method.gap, 0)], order[start : start + size]) for start in starts]
    if size < 1 or any(len(rest) < 2 for rest, _ in found):
        raise CannotSplit("TimeSeriesSplit leaves folds without rows to learn from.")
    return found
