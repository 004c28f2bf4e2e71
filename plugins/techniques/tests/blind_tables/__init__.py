"""Fifty small tables of known truth, written without reading the mechanisms; documents were fixed before measuring.

Distribution over techniques as that of the tables that reviewers keep back. Claims as those of `known_tables`, and
where a module has its own `document`, as that says. `benchmarks/technique_tables.py --set blind` counts the clear wins.
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


def patients(rng: Rng, rows: int, *, share: float = 0.35) -> tuple[pd.DataFrame, Array]:
    """A hospital's register, and the latent risk of each row; `y` is readmission."""
    age = np.clip(rng.normal(58, 16, rows), 18, 97).round()
    pressure = (95 + 0.5 * age + rng.normal(0, 12, rows)).round()
    albumin = rng.normal(3.8, 0.5, rows).round(2)
    nights = 1 + rng.poisson(3, rows)
    sex, ward = rng.choice(["f", "m"], rows), rng.choice(["A", "B", "C", "D"], rows)
    risk = 0.03 * (age - 58) - 0.9 * (albumin - 3.8) + 0.15 * (nights - 4) + 0.3 * (ward == "C")
    risk = risk + rng.normal(0, 0.8, rows)
    columns = {"age": age, "pressure": pressure, "albumin": albumin, "nights": nights, "sex": sex, "ward": ward}
    y: Array = (risk > np.quantile(risk, 1 - share)).astype(int)
    return pd.DataFrame({"id": rng.permutation(rows) + 10_000, **columns, "y": y}), risk


def houses(rng: Rng, rows: int) -> tuple[pd.DataFrame, Array]:
    """Sales of houses; `y` is the price in thousands, also returned."""
    floor = np.exp(rng.normal(4.7, 0.35, rows)).round(1)
    rooms = np.clip((floor / 28 + rng.normal(0, 0.8, rows)).round(), 1, 9)
    built, km = rng.integers(1890, 2020, rows), rng.gamma(2, 4, rows).round(2)
    heating = rng.choice(["gas", "oil", "pump"], rows, p=[0.55, 0.25, 0.2])
    price = 2.1 * floor + 0.6 * (built - 1950) - 6 * km + 35 * (heating == "pump") + rng.normal(0, 45, rows) + 120
    columns = {"floor": floor, "rooms": rooms, "built": built, "km": km, "heating": heating}
    return pd.DataFrame({"id": np.arange(rows) + 1, **columns, "y": price.round(2)}), price


def at_random(rng: Rng, rows: int, share: float = 0.3) -> Array:
    """A random test."""
    return np.asarray(rng.permutation(rows) < round(share * rows))


def with_columns(rows: pd.DataFrame, **columns: object) -> pd.DataFrame:
    """The table with further columns before its target."""
    return pd.concat([rows.drop(columns="y"), pd.DataFrame(columns, index=rows.index), rows[["y"]]], axis=1)
