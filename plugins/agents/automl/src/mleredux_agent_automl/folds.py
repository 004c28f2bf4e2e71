"""Cross-validation folds: as advised, or else stratified for classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from mleredux_agent_baseline.kit import Array, Head, make_folds

from mleredux_agent_automl.advice import Strategy

Folds = list[tuple[Array, Array]]


def folds_for(
    strategy: Strategy | None, rows: pd.DataFrame, heads: list[Head], columns: int, count: int, seed: int
) -> tuple[Folds, str, Strategy]:
    """Return pairs of training and held-out positions, with their description in words and as a strategy.

    Args:
        strategy: The advised strategy; if it is impossible with these rows, default folds are used.
        rows: The training table with all columns.
        columns: The number of features.
        count: The number of folds, unless advised.
    """
    usual: Strategy = {"name": "StratifiedKFold" if len(heads) == 1 and heads[0].classes else "KFold"}
    how = "the usual ones"
    if strategy is not None:
        try:
            return _advised(strategy, rows, heads[0], seed), f"{strategy['name']}, as advised", strategy
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            how += f", as {strategy.get('name')} is not possible: {error}"
    return make_folds(heads, len(rows), columns, count, seed), how, usual


def _advised(strategy: Strategy, rows: pd.DataFrame, head: Head, seed: int) -> Folds:
    from sklearn import model_selection as sk

    name, count = strategy["name"], max(2, min(int(strategy.get("n_splits") or 5), 20))
    x, y = np.zeros(len(rows)), (head.y if head.classes else _bins(head.y))
    groups = _groups(strategy.get("groups"), rows) if "Group" in name else None
    if name in ("GroupKFold", "StratifiedGroupKFold"):
        splitter = sk.StratifiedGroupKFold if head.classes and name.startswith("S") else sk.GroupKFold
        return list(
            splitter(min(count, len(np.unique(np.asarray(groups)))), shuffle=True, random_state=seed).split(
                x, y, groups
            )
        )
    if name in ("TimeSeriesSplit", "GroupTimeSeriesSplit"):
        order = np.argsort(_moments(rows[str(strategy["time_column"])]), kind="stable")
        splits = [(order[train], order[held]) for train, held in sk.TimeSeriesSplit(count).split(order)]
        if groups is None:
            return splits
        return [(train[~np.isin(groups[train], groups[held])], held) for train, held in splits]
    if name == "ShuffleSplit":
        share = float(strategy.get("test_size") or 0.2)
        return list(
            sk.ShuffleSplit(max(1, int(strategy.get("n_splits") or 1)), test_size=share, random_state=seed).split(x)
        )
    if name in ("KFold", "StratifiedKFold", "RepeatedKFold", "RepeatedStratifiedKFold"):
        if "Stratified" in name:
            return list(sk.StratifiedKFold(count, shuffle=True, random_state=seed).split(x, y))
        return list(sk.KFold(count, shuffle=True, random_state=seed).split(x))
    raise ValueError("it is unknown")


def _bins(y: Array) -> Array:
    """Bin the first numeric target into ten quantiles, for stratified folds."""
    values = y if y.ndim == 1 else y[:, 0]
    return np.searchsorted(np.quantile(values, np.linspace(0, 1, 11)[1:-1]), values)


def _groups(key: Any, rows: pd.DataFrame) -> Array:
    """Return codes of the rows' groups: a column, its text before a separator, or a pair of columns."""
    key = key if isinstance(key, dict) else {"column": key}
    names = rows[key["column"]].astype(str)
    if mark := key.get("separator"):
        names = names.str.rpartition(mark)[2] if key.get("after") else names.str.partition(mark)[0]
    if key.get("second"):
        names = names + "\0" + rows[key["second"]].astype(str)
    return np.asarray(pd.factorize(names)[0])


def _moments(values: pd.Series[Any]) -> Array:
    """Return times as numbers; unreadable ones come first."""
    if values.dtype.kind in "ifub":
        return values.fillna(-np.inf).to_numpy(dtype=float)
    moments = pd.to_datetime(values, errors="coerce", utc=True, format="mixed")
    return (moments - pd.Timestamp(0, tz="UTC")).dt.total_seconds().fillna(-np.inf).to_numpy()
