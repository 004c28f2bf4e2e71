"""Splits of known structure. Claims are `group` (a key), `time` (a column) or neither, and the method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from mleredux_techniques.kit import Dataset
from natural import shipped
from natural.tables import housing

from known_tables import ROWS, Array, Known, Rng, base, random_test
from known_tables.pictures import CV

RANDOM: dict[str, Any] = {}


def document(claims: dict[str, Any], truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    groups, time = None, None
    kind = "KFold" if truth["problem"] == "regression" else "StratifiedKFold"
    method: dict[str, Any] = {"name": kind}
    if "time" in claims:
        within = claims.get("within")
        order = {"descending": claims.get("descending", False)}
        time = {"column": claims["time"], "test_after_train": within is None, "within": within, **order}
        method = {"name": "TimeSeriesSplit", "time_column": claims["time"], **order}
    if "group" in claims:
        key = {"column": claims["group"], "separator": None, **claims.get("key", {})}
        ours, theirs = (_groups(frame, key) for frame in (dataset.train, dataset.test))
        groups = {"key": key, "train_groups": len(set(ours)), "shared_groups": len(set(ours) & set(theirs))}
        kind = "GroupKFold" if truth["problem"] == "regression" else "StratifiedGroupKFold"
        method = {"name": kind, "groups": key} if time is None else {**method, "groups": key}
        if time is not None:
            method["name"] = "GroupTimeSeriesSplit"
    counts = ("target", "problem", "train_rows", "test_rows", "smallest_class", "duplicate_rows", "shared_rows")
    return {**{name: truth[name] for name in counts}, "groups": groups, "time": time, "method": method}


def _groups(frame: pd.DataFrame, key: dict[str, Any]) -> list[tuple[str, ...]]:
    names = [name for name in (key["column"], key.get("second")) if name]
    texts = frame[names].astype(str)
    if key["separator"]:
        part = texts[key["column"]].str.rsplit if key.get("after") else texts[key["column"]].str.split
        texts[key["column"]] = part(key["separator"], n=1).str[-1 if key.get("after") else 0]
    return list(texts.itertuples(index=False, name=None))


def _with_groups(rng: Rng, rows: pd.DataFrame, groups: Array) -> Array:
    """Let features and target depend on the group, and return a test of complete groups."""
    count = int(groups.max()) + 1
    for name in ("f0", "f1"):
        rows[name] = (0.3 * rows[name] + rng.normal(size=count)[groups]).round(4)
    level = rng.normal(0, 1.5, count)[groups] + 0.6 * rows["f0"] + rng.normal(0, 0.7, ROWS)
    rows["y"] = level if rows["y"].dtype.kind == "f" else (level > 0).astype(int)
    return np.isin(groups, rng.permutation(count)[: round(0.3 * count)])


def _with_time(rng: Rng, rows: pd.DataFrame, moments: Array) -> Array:
    """Let a feature and the target drift, and return a test of the last rows."""
    rows["f0"] = (rows["f0"] + 3 * moments**2).round(4)
    slope = 1.5 - 3 * moments
    level = slope * rows["f0"] + 0.5 * rows["f1"] + rng.normal(0, 0.6, ROWS)
    rows["y"] = level if rows["y"].dtype.kind == "f" else (level > np.median(level)).astype(int)
    return np.asarray(moments > np.quantile(moments, 0.7))


def at_random(rng: Rng) -> Known:
    rows = base(rng)
    rows["unit"] = [f"u{k}" for k in rng.integers(0, 400, ROWS)]
    return Known(rows, random_test(rng), RANDOM, {"group": "unit"})


def by_text(rng: Rng) -> Known:
    rows, groups = base(rng), rng.integers(0, 300, ROWS)
    test = _with_groups(rng, rows, groups)
    rows["who"] = [f"P{k:03d}" for k in rng.permutation(300)[groups]]
    return Known(rows, test, {"group": "who"}, RANDOM)


def by_number(rng: Rng) -> Known:
    rows, groups = base(rng, "regression"), rng.integers(0, 300, ROWS)
    test = _with_groups(rng, rows, groups)
    rows["who"] = rng.permutation(90_000)[:300][groups]
    return Known(rows, test, {"group": "who"}, RANDOM, "rmse")


def by_late_numbers(rng: Rng) -> Known:
    """Groups are numbered, and the last ones are the test."""
    rows, groups = base(rng), rng.integers(0, 200, ROWS)
    _with_groups(rng, rows, groups)
    rows["who"] = groups
    return Known(rows, groups >= 140, {"group": "who"}, RANDOM)


def by_prefix(rng: Rng) -> Known:
    rows, groups = base(rng), rng.integers(0, 250, ROWS)
    test = _with_groups(rng, rows, groups)
    rows["tag"] = [
        f"{a:04d}-{b}" for a, b in zip(rng.permutation(250)[groups], rng.integers(0, 9999, ROWS), strict=True)
    ]
    return Known(rows, test, {"group": "tag", "key": {"separator": "-"}}, RANDOM)


def by_suffix(rng: Rng) -> Known:
    rows, groups = base(rng), rng.integers(0, 250, ROWS)
    test = _with_groups(rng, rows, groups)
    rows["tag"] = [
        f"{b}_{a:04d}" for a, b in zip(rng.permutation(250)[groups], rng.integers(0, 9999, ROWS), strict=True)
    ]
    return Known(rows, test, {"group": "tag", "key": {"separator": "_", "after": True}}, RANDOM)


def by_two_columns(rng: Rng) -> Known:
    rows = base(rng)
    a, b = rng.integers(0, 20, ROWS), rng.integers(0, 20, ROWS)
    test = _with_groups(rng, rows, a * 20 + b)
    rows["shop"], rows["shelf"] = [f"s{k}" for k in a], [f"h{k}" for k in b]
    return Known(rows, test, {"group": "shop", "key": {"second": "shelf"}}, RANDOM)


def by_coordinates(rng: Rng) -> Known:
    rows, groups = base(rng), rng.integers(0, 300, ROWS)
    test = _with_groups(rng, rows, groups)
    rows["lat"], rows["lon"] = rng.integers(0, 25, 300)[groups] / 4, (np.arange(300) // 25)[groups] / 4
    rows["lat"] = (np.arange(300) % 25)[groups] / 4
    return Known(rows, test, {"group": "lat", "key": {"second": "lon"}}, RANDOM)


def by_cycle(rng: Rng) -> Known:
    rows, moments = base(rng), rng.random(ROWS)
    test = _with_time(rng, rows, moments)
    rows["cycle"] = (moments * 1e6).astype(int)
    return Known(rows, test, {"time": "cycle"}, RANDOM)


def by_epoch(rng: Rng) -> Known:
    rows, moments = base(rng, "regression"), rng.random(ROWS)
    test = _with_time(rng, rows, moments)
    rows["q"] = 1_600_000_000 + (moments * 5e7).astype(int)
    return Known(rows, test, {"time": "q"}, RANDOM, "rmse")


def by_date(rng: Rng) -> Known:
    rows, moments = base(rng), rng.random(ROWS)
    test = _with_time(rng, rows, moments)
    days = pd.Timestamp("2021-03-01") + pd.to_timedelta((moments * 900).astype(int), unit="D")
    rows["noted"] = days.strftime("%d/%m/%Y")
    return Known(rows, test, {"time": "noted"}, {"group": "noted"})


def by_week_numbers(rng: Rng) -> Known:
    rows, moments = base(rng), np.floor(rng.random(ROWS) * 60) / 60
    _with_time(rng, rows, moments)
    rows["w"] = (moments * 60).round().astype(int)
    return Known(rows, np.asarray(moments >= 0.7), {"time": "w"}, RANDOM)


def by_quarter(rng: Rng) -> Known:
    rows = base(rng)
    test = _with_time(rng, rows, np.arange(ROWS) / ROWS)
    rows.insert(1, "quarter", [f"{2015 + one // 4}Q{one % 4 + 1}" for one in np.arange(ROWS) * 20 // ROWS])
    return Known(rows, test, {"time": "quarter"}, {})


def with_unemployment(rng: Rng) -> Known:
    """Houses sold in Texas, beside the month's name and the unemployed in it (plotnine's data of ggplot2, MIT), which
    follow from the date.
    """
    months = pd.read_csv(shipped("plotnine", "data", "economics.csv"), parse_dates=["date"])
    months["year"], months["month"] = months["date"].dt.year, months["date"].dt.month
    months["period"] = months["date"].dt.strftime("%b %y")
    rows = housing().merge(months.drop(columns="date"), on=["year", "month"]).rename(columns={"median": "y"})
    test, rows = (rows["date"] >= 2013).to_numpy(), rows.drop(columns=["month", "year", "pce", "pop", "psavert"])
    return Known(rows.assign(id=rng.permutation(len(rows))), test, {"time": "date"}, RANDOM, "mae")


def by_id(rng: Rng) -> Known:
    rows, moments = base(rng), rng.random(ROWS)
    test = _with_time(rng, rows, moments)
    rows["id"] = np.argsort(np.argsort(moments)) + 1000
    return Known(rows, test, {"time": "id"}, RANDOM)


def by_group_and_time(rng: Rng) -> Known:
    rows, groups = base(rng), rng.integers(0, 200, ROWS)
    _with_groups(rng, rows, groups)
    start = rng.random(200)
    start[start > 0.65] += 0.15
    moments = start[groups] + 0.1 * rng.random(ROWS)
    rows["who"], rows["tick"] = [f"P{k:03d}" for k in rng.permutation(200)[groups]], (moments * 1e5).astype(int)
    return Known(rows, start[groups] > 0.65, {"group": "who", "time": "tick"}, RANDOM)


def last_of_each(rng: Rng) -> Known:
    """The test are the last rows of each customer, whose times overlap."""
    rows, groups = base(rng), np.repeat(np.arange(ROWS // 12), 12)
    order = np.tile(np.arange(12), ROWS // 12)
    rows["customer"] = [f"c{k}" for k in rng.permutation(ROWS // 12)[groups]]
    rows["minute"] = rng.integers(0, 40_000, ROWS // 12)[groups] + order * 900 + rng.integers(0, 800, ROWS)
    return Known(rows, order >= 9, {"time": "minute", "within": "customer"}, RANDOM)


KINDS = {
    kind.__name__: kind
    for kind in (
        *(at_random, by_text, by_number, by_late_numbers, by_prefix, by_suffix, by_two_columns, by_coordinates),
        *(by_cycle, by_epoch, by_date, by_quarter, by_week_numbers, by_id, by_group_and_time, last_of_each),
        with_unemployment,
        *CV,
    )
}
