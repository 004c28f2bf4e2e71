"""Natural tables: data that nobody planted anything in, split as a competition's host would, and their answer sheets.

Sheets are written by hand before graders are run; `evidence` has the tests behind them. The tables ship inside
packages, are read from them, and are registered for tests only (`plugin.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Natural:
    """A table, and how a host would make a competition of it.

    Attributes:
        source, licence: Of the data, and of the package that ships it.
        load: Returns all rows, with the target.
        held_out: Returns which rows are the test.
        sorted: Whether rows stay in the order of the source, as `id` shows.
    """

    id: str
    source: str
    licence: str
    load: Callable[[], pd.DataFrame]
    held_out: Callable[[pd.DataFrame], pd.Series]
    target: str
    metric: str
    minimize: bool = False
    sorted: bool = False
    fields: dict[str, Any] = field(default_factory=dict)


def shipped(package: str, *parts: str) -> Path:
    """The path of a file inside an installed package, which is not imported."""
    spec = find_spec(package)
    assert spec is not None and spec.submodule_search_locations, f"{package} is not installed."
    return Path(spec.submodule_search_locations[0]).joinpath(*parts)


def random_rows(table: pd.DataFrame, share: float = 0.3) -> pd.Series:
    """A random test."""
    return pd.Series(np.random.default_rng(1).random(len(table)) < share, index=table.index)


def whole(column: str, share: float = 0.3) -> Callable[[pd.DataFrame], pd.Series]:
    """A test of whole groups."""

    def held_out(table: pd.DataFrame) -> pd.Series:
        names = np.sort(table[column].unique())
        chosen = np.random.default_rng(1).permutation(names)[: round(share * len(names))]
        return table[column].isin(chosen)

    return held_out
