"""Selection of held-out rows, groups or files, as drawn by scikit-learn's splitters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mleredux.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


def split_positions(
    count: int, *, test_size: float | None, seed: int, train_size: float | None = None, stratify: Any = None
) -> tuple[Any, Any]:
    """Split positions 0 to count-1 like scikit-learn's `train_test_split`.

    Args:
        test_size: A share (rounded up) or a number of rows; None if `train_size` determines it.
        train_size: A share (rounded down) or a number of rows; None for the rest.
        stratify: Labels whose shares to preserve.

    Returns:
        Training and test positions, each in the order drawn.

    Raises:
        DataError: There are too few rows.
    """
    import numpy as np

    tests = _count(test_size, count, math.ceil)
    trains = _count(train_size, count, math.floor)
    tests = count - (trains or 0) if tests is None else tests
    trains = count - tests if trains is None else trains
    if tests < 1 or trains < 1 or tests + trains > count:
        raise DataError(
            f"The raw data has too few entries to split ({count}): {trains} for training, {tests} for testing.",
            hint="Get the raw data again; the download may be incomplete.",
        )
    if stratify is None:
        drawn = np.random.RandomState(seed).permutation(count)
        return drawn[tests : tests + trains], drawn[:tests]
    from sklearn.model_selection import train_test_split  # importing it takes longer than splitting most data

    try:
        train, test = train_test_split(
            np.arange(count), test_size=tests, train_size=trains, random_state=seed, stratify=stratify
        )
    except ValueError as error:
        raise DataError(
            f"Cannot split the raw data by label: {' '.join(str(error).split())}",
            hint="Get the raw data again; the download may be incomplete.",
        ) from error
    return train, test


def _count(size: float | None, count: int, rounded: Callable[[float], int]) -> int | None:
    return size if size is None or isinstance(size, int) else rounded(size * count)


def take(items: Any, positions: Any) -> Any:
    """Return the items at the given positions of a table, a list or an array."""
    if hasattr(items, "iloc"):
        return items.iloc[positions]
    return [items[position] for position in positions] if isinstance(items, Sequence) else items[positions]


def by_group(table: pd.DataFrame, group: Any, train: Any, test: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of training and test groups, in raw order; `group` is a column or a series of groups."""
    groups = table[group] if isinstance(group, str) else group
    return table[groups.isin(list(train))], table[groups.isin(list(test))]


def joined_groups(table: pd.DataFrame, group: Any, groups: Sequence[Any]) -> pd.DataFrame:
    """Return the rows of groups in the given order, in raw order within each; `group` is as in `by_group`."""
    import numpy as np
    import pandas as pd

    rank = pd.Index(groups).get_indexer(pd.Index(table[group] if isinstance(group, str) else group))
    kept = np.flatnonzero(rank >= 0)
    return table.iloc[kept[np.argsort(rank[kept], kind="stable")]]
