"""More small tables of known truth, of kinds that were written after the mechanisms: the first result counts.

Modules and claims as those of `known_tables`, whose documents are used, but with other honest columns.
`benchmarks/technique_tables.py` states on how many the right document wins clearly.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import numpy as np
import pandas as pd
from known_tables import Array, Known, Rng

NAMES = ("leakage", "cv", "missing", "encoding", "imbalance", "scaling")


def kinds(technique: str) -> dict[str, Callable[[Rng], Known]]:
    """The tables of a technique, by name."""
    found: dict[str, Callable[[Rng], Known]] = import_module(f"{__name__}.{technique}").KINDS
    return found


def mixed(rng: Rng, rows: int, problem: str = "binary", *, share: float = 0.4, noise: float = 1.0) -> pd.DataFrame:
    """Six honest columns of different distributions, and a target that four of them tell in part."""
    a, b, c = rng.normal(size=(3, rows))
    area, rate, visits = np.exp(0.6 * a + 4).round(1), (100 * rng.beta(2, 5, rows)).round(2), rng.poisson(3, rows)
    site = rng.choice(["north", "south", "east"], rows, p=[0.5, 0.3, 0.2])
    level = 0.9 * a - 0.6 * np.abs(b) + 0.03 * rate + 0.4 * (site == "south") + rng.normal(0, noise, rows)
    if problem == "binary":
        y: Array = (level > np.quantile(level, 1 - share)).astype(int)
    elif problem == "multiclass":
        y = np.array(["alder", "birch", "cedar"], dtype=object)[np.digitize(level, np.quantile(level, [0.4, 0.75]))]
    else:
        y = (30 + 8 * level).round(3)
    table = {"area": area, "slope": b.round(4), "rate": rate, "visits": visits, "gauge": c.round(3), "site": site}
    return pd.DataFrame({"id": rng.permutation(rows) + 1, **table, "y": y})


def held_out(rng: Rng, rows: int, share: float = 0.3) -> Array:
    """A random test."""
    return np.isin(np.arange(rows), rng.permutation(rows)[: round(share * rows)])


def put(rows: pd.DataFrame, **columns: object) -> pd.DataFrame:
    """The table with further columns in its middle."""
    for name, values in columns.items():
        rows.insert(4, name, values if isinstance(values, pd.Series) else pd.Series(values).infer_objects())  # type: ignore[call-overload]
    return rows
