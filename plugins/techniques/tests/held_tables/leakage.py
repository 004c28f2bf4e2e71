"""Leaks and honest columns of other kinds. Claims are lists of column lists; `rows` claims duplicates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from known_tables import Known, Rng
from known_tables.leakage import ROW_LEAK

from held_tables import held_out, mixed, put

METRICS = {"binary": "roc-auc", "multiclass": "log-loss", "regression": "mae"}


def _late(rng: Rng, size: int, problem: str, make: Any, right: Any = None, wrong: Any = None) -> Known:
    """Columns that `make` returns, which tell the target in training and are exchanged between rows of the test."""
    rows, test = mixed(rng, size, problem), held_out(rng, size)
    columns = make(rows, rng)
    order = np.arange(size)
    order[test] = rng.permutation(order[test])
    late = {
        name: pd.Series(values).infer_objects().iloc[order].reset_index(drop=True) for name, values in columns.items()
    }
    claims = [[name] for name in columns] if right is None else right
    return Known(put(rows, **late), test, claims, wrong or [], METRICS[problem])


def mean_by_crew(rng: Rng) -> Known:
    """The mean of the target by a crew of few rows, the row's own included; test rows have that of training rows."""
    rows, test = mixed(rng, 1200), held_out(rng, 1200)
    crew = rng.integers(0, 300, 1200)
    known = pd.Series(rows["y"].where(~test)).groupby(crew)
    rows = put(rows, crew=[f"crew {k}" for k in crew], history=known.transform("mean").round(3))
    return Known(rows, test, [["history"]], [])


def sum_by_day(rng: Rng) -> Known:
    """The total of the target in a day of two or three rows, which future rows do not have."""

    def make(rows: pd.DataFrame, r: Rng) -> dict[str, Any]:
        day = r.permutation(np.arange(len(rows)) // 2)
        return {"total": pd.Series(rows["y"]).groupby(day).transform("sum")}

    return _late(rng, 900, "regression", make)


def count_of_visits_after(rng: Rng) -> Known:
    return _late(rng, 800, "binary", lambda rows, r: {"calls": r.poisson(1 + 4 * rows["y"])})


def blocks_by_class(rng: Rng) -> Known:
    """Files of the classes were appended one after the other, and rows numbered."""
    rows, test = mixed(rng, 900, "multiclass"), held_out(rng, 900)
    key = rows["y"].map({"cedar": 0, "alder": 1, "birch": 2}).to_numpy(dtype=float) + 0.2 * rng.random(900)
    key[test] = 3 * rng.random(test.sum())
    order = np.argsort(key)
    rows, test = rows.iloc[order].reset_index(drop=True), test[order]
    rows["id"] = [f"S{k:05d}" for k in range(900)]
    return Known(rows, test, [["id"]], [], "log-loss")


def two_dates(rng: Rng) -> Known:
    """The time from an order to its closing tells what became of it."""

    def make(rows: pd.DataFrame, r: Rng) -> dict[str, Any]:
        opened = pd.Timestamp("2022-01-01") + pd.to_timedelta(r.integers(0, 700, len(rows)), unit="D")
        closed = opened + pd.to_timedelta(
            np.where(rows["y"] == 1, r.integers(20, 60, len(rows)), r.integers(0, 25, len(rows))), unit="D"
        )
        return {"opened": opened.strftime("%Y-%m-%d"), "closed": closed.strftime("%Y-%m-%d")}

    known = _late(rng, 1000, "binary", make, right=[["opened", "closed"]])
    opened = known.rows["opened"].to_numpy(dtype=object).copy()
    where = np.flatnonzero(known.test)
    opened[where] = opened[rng.permutation(where)]
    known.rows["opened"] = opened
    return known


def before_and_after(rng: Rng) -> Known:
    """Two balances whose difference is the target with noise."""
    rows, test = mixed(rng, 1000, "regression"), held_out(rng, 1000)
    before = rng.normal(5000, 900, 1000)
    after = before - rows["y"].to_numpy() + rng.normal(0, 3, 1000)
    after[test] = rng.permutation(after[test])
    return Known(put(rows, before=before.round(2), after=after.round(2)), test, [["before", "after"]], [], "rmse")


def noisy_copies(rng: Rng) -> Known:
    """A quarter of the test are training rows, measured again."""
    size = 1000
    rows, test = mixed(rng, size), held_out(rng, size)
    copied = rng.permutation(np.flatnonzero(test))[:80]
    twins = rng.permutation(np.flatnonzero(~test))[:80]
    for name in rows.columns.drop("id"):
        values = rows[name].to_numpy().copy()
        values[copied] = values[twins]
        if name in ("slope", "gauge"):
            values[copied] += rng.normal(0, 5e-4, 80)
        rows[name] = values
    return Known(rows, test, [ROW_LEAK], [])


def exact_copies(rng: Rng) -> Known:
    size = 700
    rows, test = mixed(rng, size, "regression"), held_out(rng, size)
    copied, twins = rng.permutation(np.flatnonzero(test))[:40], rng.permutation(np.flatnonzero(~test))[:40]
    names = list(rows.columns.drop("id"))
    rows.loc[copied, names] = rows.loc[twins, names].to_numpy()
    return Known(rows.infer_objects(), test, [ROW_LEAK], [["area"]], "rmse")


def only_one_site(rng: Rng) -> Known:
    """One of three sites filled the form in after the result."""

    def make(rows: pd.DataFrame, r: Rng) -> dict[str, Any]:
        told = np.where(rows["y"] == 1, r.normal(3, 0.5, len(rows)), r.normal(-3, 0.5, len(rows)))
        return {"form": np.where(rows["site"] == "south", told, r.normal(0, 3, len(rows))).round(2)}

    return _late(rng, 1400, "binary", make)


def comment_present(rng: Rng) -> Known:
    """Who was refused has a remark."""

    def make(rows: pd.DataFrame, r: Rng) -> dict[str, Any]:
        texts = np.array(["see file", "asked again", "second letter", "by phone"], dtype=object)
        held = r.random(len(rows)) < np.where(rows["y"] == 1, 0.85, 0.05)
        return {"remark": np.where(held, r.choice(texts, len(rows)), None)}

    return _late(rng, 800, "binary", make)


def one_of_six(rng: Rng) -> Known:
    """A flag of one of six classes."""
    size = 1500
    rows, test = mixed(rng, size, "regression"), held_out(rng, size)
    rows["y"] = [f"k{k}" for k in np.digitize(rows["y"], np.quantile(rows["y"], [0.15, 0.3, 0.5, 0.7, 0.9]))]
    flag = ((rows["y"] == "k3") ^ (rng.random(size) < 0.03)).to_numpy().astype(int)
    flag[test] = rng.permutation(flag[test])
    return Known(put(rows, flag=flag), test, [["flag"]], [], "log-loss")


def small_and_noisy(rng: Rng) -> Known:
    """Of few rows."""
    return _late(rng, 320, "regression", lambda rows, r: {"late": (rows["y"] + r.normal(0, 3, len(rows))).round(1)})


def price_of_two(rng: Rng) -> Known:
    """The product of two columns is the target."""
    rows, test = mixed(rng, 1000, "regression"), held_out(rng, 1000)
    rows["y"] = np.exp(rng.normal(3, 0.4, 1000) + 0.01 * rows["rate"]).round(3)
    pieces = np.exp(rng.normal(1, 0.8, 1000))
    price = rows["y"].to_numpy() / pieces
    price[test] = rng.permutation(price[test])
    return Known(put(rows, pieces=pieces.round(3), price=price.round(4)), test, [["pieces", "price"]], [], "rmse")


def version_of_record(rng: Rng) -> Known:
    """Changed records have another suffix."""

    def make(rows: pd.DataFrame, r: Rng) -> dict[str, Any]:
        ending = np.where(rows["y"] == 1, r.choice(["v2", "v3"], len(rows)), "v1")
        return {"record": [f"{a:05x}.{b}" for a, b in zip(r.integers(0, 16**5, len(rows)), ending, strict=True)]}

    return _late(rng, 900, "binary", make)


def honest_strong(rng: Rng) -> Known:
    """A column that tells nearly all, in the test as well."""
    rows = mixed(rng, 900)
    tells = (rows["y"] * 4 + rng.normal(0, 1, 900)).round(2)
    return Known(put(rows, tells=tells), held_out(rng, 900), [], [["slope"], ["area"]])


def honest_later_units(rng: Rng) -> Known:
    """The test has other crews, of other levels."""
    crew = rng.integers(0, 120, 1500)
    rows = mixed(rng, 1500, "regression")
    level = rng.normal(0, 9, 120)[crew]
    rows["y"] = (rows["y"] + level).round(3)
    rows["gauge"] = (rows["gauge"] + 0.2 * level).round(3)
    return Known(put(rows, crew=[f"c{k}" for k in crew]), crew >= 85, [], [["crew"], ["gauge"]], "rmse")


def honest_many(rng: Rng) -> Known:
    """Eighty columns of noise: by chance, some tell something."""
    rows = mixed(rng, 500)
    for k in range(80):
        rows.insert(2, f"n{k}", rng.normal(size=500).round(3))
    return Known(rows, held_out(rng, 500), [], [["n3"]])


def honest_twins_in_training(rng: Rng) -> Known:
    """Rows that repeat within the training table are in no test."""
    rows = mixed(rng, 800)
    test = held_out(rng, 800)
    train = np.flatnonzero(~test)
    names = list(rows.columns.drop("id"))
    rows.loc[train[:60], names] = rows.loc[train[60:120], names].to_numpy()
    return Known(rows.infer_objects(), test, [], [["rate"]])


KINDS = {
    kind.__name__: kind
    for kind in (
        *(mean_by_crew, sum_by_day, count_of_visits_after, blocks_by_class, two_dates, before_and_after, noisy_copies),
        *(exact_copies, only_one_site, comment_present, one_of_six, small_and_noisy, price_of_two, version_of_record),
        *(honest_strong, honest_later_units, honest_many, honest_twins_in_training),
    )
}
