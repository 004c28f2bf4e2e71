"""Splits of other kinds. Claims as those of `known_tables.cv`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from known_tables import Array, Known, Rng
from known_tables.cv import RANDOM

from held_tables import held_out, mixed, put


def _alike(rng: Rng, rows: pd.DataFrame, groups: Array) -> None:
    """Let columns and target depend on the group."""
    count = int(groups.max()) + 1
    rows["slope"] = (0.3 * rows["slope"] + rng.normal(size=count)[groups]).round(4)
    rows["gauge"] = (0.2 * rows["gauge"] + rng.normal(size=count)[groups]).round(4)
    level = rng.normal(0, 1.5, count)[groups] + rng.normal(0, 0.5, len(rows))
    rows["y"] = level.round(3) if rows["y"].dtype.kind == "f" else (level > np.median(level)).astype(int)


def _turning(rng: Rng, rows: pd.DataFrame, moments: Array) -> None:
    """Let relations change with time."""
    level = (1.5 - 3 * moments) * rows["slope"] + rows["gauge"] * (2 * moments - 0.5) + rng.normal(0, 0.5, len(rows))
    rows["y"] = level.round(3) if rows["y"].dtype.kind == "f" else (level > np.median(level)).astype(int)


def _some(rng: Rng, groups: Array, share: float = 0.3) -> Array:
    count = int(groups.max()) + 1
    return np.isin(groups, rng.permutation(count)[: round(share * count)])


def whole_days(rng: Rng) -> Known:
    """Rows of one day were kept together; days were drawn at random."""
    rows, day = mixed(rng, 1200), rng.integers(0, 150, 1200)
    _alike(rng, rows, day)
    dates = (pd.Timestamp("2023-02-01") + pd.to_timedelta(day, unit="D")).strftime("%Y-%m-%d")
    return Known(put(rows, day=dates), _some(rng, day), {"group": "day"}, RANDOM)


def two_numbers(rng: Rng) -> Known:
    """Cells of a grid: row and column of a plate."""
    a, b = rng.integers(1, 13, 1500), rng.integers(1, 15, 1500)
    rows = mixed(rng, 1500, "regression")
    _alike(rng, rows, a * 15 + b)
    test = _some(rng, a * 15 + b)
    return Known(put(rows, lane=a, rack=b), test, {"group": "lane", "key": {"second": "rack"}}, RANDOM, "rmse")


def last_years(rng: Rng) -> Known:
    """The last two of nine years are the test."""
    rows, moments = mixed(rng, 1300), rng.random(1300)
    _turning(rng, rows, moments)
    year = 2012 + np.floor(9 * moments).astype(int)
    return Known(put(rows, year=year), year >= 2019, {"time": "year"}, RANDOM)


def written_dates(rng: Rng) -> Known:
    rows, moments = mixed(rng, 1000, "regression"), rng.random(1000)
    _turning(rng, rows, moments)
    dates = (pd.Timestamp("2020-05-01") + pd.to_timedelta((moments * 500).astype(int), unit="D")).strftime("%d %B %Y")
    return Known(put(rows, signed=dates), moments > 0.72, {"time": "signed"}, RANDOM, "mae")


def falling_counter(rng: Rng) -> Known:
    """Days that are left: the test has the smallest."""
    rows, moments = mixed(rng, 1000), rng.random(1000)
    _turning(rng, rows, moments)
    return Known(
        put(rows, left=(900 * (1 - moments)).astype(int)), moments > 0.7, {"time": "left", "descending": True}, RANDOM
    )


def stations_and_years(rng: Rng) -> Known:
    """New stations in later months."""
    size = 1600
    rows, station = mixed(rng, size), rng.integers(0, 160, size)
    _alike(rng, rows, station)
    opened = rng.random(160)
    opened[opened > 0.7] += 0.2
    month = np.floor(40 * (opened[station] + 0.08 * rng.random(size))).astype(int)
    rows = put(rows, station=[f"st-{k:03d}" for k in rng.permutation(160)[station]], month=month)
    return Known(rows, opened[station] > 0.7, {"group": "station", "time": "month"}, RANDOM)


def next_purchase(rng: Rng) -> Known:
    """The last purchase of each of some buyers."""
    buyer, place = np.repeat(np.arange(150), 8), np.tile(np.arange(8), 150)
    rows = mixed(rng, 1200, "regression")
    _alike(rng, rows, buyer)
    rows["y"] = (rows["y"] + 0.4 * place).round(3)
    moment = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 300, 150)[buyer] + 20 * place, unit="D")
    rows = put(rows, buyer=rng.permutation(150)[buyer] + 7000, bought=moment.strftime("%Y-%m-%d"))
    order = rng.permutation(1200)
    rows, test = rows.iloc[order].reset_index(drop=True), (place == 7)[order]
    return Known(rows, test, {"time": "bought", "within": "buyer"}, RANDOM, "rmse")


def households(rng: Rng) -> Known:
    """Small groups of one to four rows."""
    size = 1100
    rows, house = mixed(rng, size), np.sort(rng.integers(0, 480, size))
    _alike(rng, rows, house)
    return Known(
        put(rows, household=rng.permutation(480)[house] + 100_000), _some(rng, house), {"group": "household"}, RANDOM
    )


def many_decoys(rng: Rng) -> Known:
    """Drawn at random, with dates, shops and counters."""
    size = 1000
    rows, moments = mixed(rng, size), np.sort(rng.random(size))
    dates = (pd.Timestamp("2020-01-01") + pd.to_timedelta((moments * 900).astype(int), unit="D")).strftime("%Y-%m-%d")
    rows = put(rows, shop=[f"s{k}" for k in rng.integers(0, 80, size)], day=dates, counter=(moments * 1e5).astype(int))
    return Known(rows, held_out(rng, size), RANDOM, {"time": "day"})


def drift_without_time(rng: Rng) -> Known:
    """Columns are higher in the test, and no column orders the rows: no time and no group can be named."""
    rows = mixed(rng, 1200, "regression")
    test = rng.random(1200) < 1 / (1 + np.exp(-1.5 * (rows["slope"] + rows["gauge"] - 0.8)))
    return Known(rows, np.asarray(test), RANDOM, {"time": "gauge"}, "rmse")


def letters_of_wards(rng: Rng) -> Known:
    """Groups in the last part of a code of three."""
    size = 1200
    rows, ward = mixed(rng, size), rng.integers(0, 130, size)
    _alike(rng, rows, ward)
    code = [f"{rng.integers(10, 99)}/{rng.integers(1000)}/w{k}" for k in ward]
    return Known(
        put(rows, code=code), _some(rng, ward), {"group": "code", "key": {"separator": "/", "after": True}}, RANDOM
    )


KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(whole_days, two_numbers, last_years, written_dates, falling_counter, stations_and_years, next_purchase),
        *(households, many_decoys, drift_without_time, letters_of_wards),
    )
}
