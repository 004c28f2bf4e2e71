"""Splits of other data: households in two columns, strange units of time, days that count down, decoys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from known_tables import Array, Known, Rng
from known_tables.cv import document

from blind_tables import at_random, patients, with_columns

__all__ = ["KINDS", "document"]
STREETS = ("Oak", "Elm", "Mill", "High", "Park", "Lake", "Hill", "King", "Bay", "Rose")
RANDOM: dict[str, Any] = {}


def _whole(rng: Rng, groups: Array, share: float = 0.3) -> Array:
    """Whole groups as the test."""
    names = np.unique(groups)
    return np.isin(groups, rng.permutation(names)[: round(share * len(names))])


def _alike(rng: Rng, rows: pd.DataFrame, risk: Array, groups: Array, strength: float = 2.0) -> pd.DataFrame:
    """Rows of a group share some of what decides, and a column that recognizes the group."""
    size = groups.max() + 1
    level = risk + strength * rng.normal(size=size)[groups]
    rows["y"] = (level > np.quantile(level, 0.65)).astype(int)
    marks = rng.normal(size=(size, 2))[groups] + rng.normal(0, 0.02, (len(rows), 2))
    return with_columns(rows, sodium=(140 + 3 * marks[:, 0]).round(2), height=(170 + 9 * marks[:, 1]).round(1))


def street_and_number(rng: Rng) -> Known:
    """Households are a street and a number; both occur in training and test."""
    households = rng.permutation(900)[:260]
    groups = rng.integers(0, 260, 1300)
    rows, risk = patients(rng, 1300)
    rows = _alike(rng, rows, risk, groups)
    streets = np.array([f"{name} street" for name in STREETS])
    rows = with_columns(rows, street=streets[households[groups] % 10], number=households[groups] // 10 + 1)
    test = _whole(rng, groups)
    return Known(rows, test, {"group": "street", "key": {"second": "number"}}, RANDOM)


def _changing(rng: Rng, size: int, moment: Array) -> pd.DataFrame:
    """A relation that changes over time."""
    rows, risk = patients(rng, size)
    x = rng.normal(size=(size, 2))
    level = risk + 1.6 * x[:, 0] * np.where(moment < 0.7, 1, -0.6) + 1.2 * x[:, 1] * np.cos(3.5 * moment)
    rows["y"] = (level > np.quantile(level, 0.6)).astype(int)
    return with_columns(rows, dose=x[:, 0].round(3), ratio=x[:, 1].round(3))


def nanoseconds(rng: Rng) -> Known:
    """Time is nanoseconds since 1970."""
    moment = rng.random(1200)
    rows = _changing(rng, 1200, moment)
    stamps = 1_600_000_000_000_000_000 + (moment * 4e16).astype(np.int64)
    return Known(with_columns(rows, ts=stamps), moment > 0.72, {"time": "ts"}, RANDOM)


def days_ago(rng: Rng) -> Known:
    """Time is days before the export: the test has the smallest numbers."""
    moment = rng.random(1000)
    rows = _changing(rng, 1000, moment)
    rows = with_columns(rows, days_ago=((1 - moment) * 1500).astype(int))
    return Known(rows, moment > 0.7, {"time": "days_ago"}, RANDOM)


def wells_of_plates(rng: Rng) -> Known:
    """The text before the hyphen is the plate, which is wholly in one table."""
    groups = rng.integers(0, 80, 960)
    rows, risk = patients(rng, 960)
    rows = _alike(rng, rows, risk, groups)
    well = [f"{rng.choice(list('ABCDEFGH'))}{rng.integers(1, 13):02d}" for _ in range(960)]
    rows = with_columns(rows, sample=[f"PL{k:03d}-{name}" for k, name in zip(groups, well, strict=True)])
    key = {"separator": "-"}
    return Known(rows, _whole(rng, groups), {"group": "sample", "key": key}, RANDOM)


def hours_of_day(rng: Rng) -> Known:
    """Hours and weekdays go round, and the split is random."""
    rows, risk = patients(rng, 900)
    hour, weekday = rng.integers(0, 24, 900), rng.integers(1, 8, 900)
    level = risk + np.sin(hour / 24 * 2 * np.pi)
    rows["y"] = (level > np.quantile(level, 0.6)).astype(int)
    return Known(with_columns(rows, hour=hour, weekday=weekday), at_random(rng, 900), RANDOM, {"time": "hour"})


def sites_not_operators(rng: Rng) -> Known:
    """Whole sites are the test; operators work at all of them."""
    groups = rng.integers(0, 30, 1200)
    rows, risk = patients(rng, 1200)
    rows = _alike(rng, rows, risk, groups)
    operator = rng.choice([f"op{k}" for k in range(25)], 1200)
    rows = with_columns(rows, site=[f"S{k:02d}" for k in rng.permutation(30)[groups]], operator=operator)
    return Known(rows, _whole(rng, groups), {"group": "site"}, {"group": "operator"})


def quarters(rng: Rng) -> Known:
    """Texts such as 2019Q3; the test is the last quarters."""
    quarter = rng.integers(0, 24, 1200)
    rows = _changing(rng, 1200, quarter / 24)
    texts = [f"{2014 + k // 4}Q{k % 4 + 1}" for k in quarter]
    return Known(with_columns(rows, period=texts), quarter >= 17, {"time": "period"}, RANDOM)


def regular_customers(rng: Rng) -> Known:
    """Customers come again, in both tables: their rows were split at random."""
    groups = rng.integers(0, 150, 1200)
    rows, risk = patients(rng, 1200)
    rows = with_columns(_alike(rng, rows, risk, groups), customer=[f"c{k}" for k in groups])
    return Known(rows, at_random(rng, 1200), RANDOM, {"group": "customer"})


KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(street_and_number, nanoseconds, days_ago, wells_of_plates, hours_of_day, sites_not_operators),
        *(quarters, regular_customers),
    )
}
