"""Gaps of known mechanisms. Claims are a mechanism and its columns, of column `gap`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from mleredux_techniques.kit import Dataset
from natural import shipped, whole

from known_tables import ROWS, Array, Known, Rng, base, random_test

NOTHING: tuple[str, list[str]] = ("MCAR", [])


def document(claims: dict[str, tuple[str, list[str]]], truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    columns = []
    for name, count in truth["counts"].items():
        mechanism, drivers = claims.get(name, NOTHING)
        how = {"name": "SimpleImputer", "strategy": "most_frequent" if dataset.kinds[name] == "text" else "mean"}
        how["add_indicator"] = mechanism != "MCAR"
        columns.append(
            {"column": name, "missing": count, "mechanism": mechanism, "depends_on": drivers, "imputation": how}
        )
    together = [{"columns": [a, b], "rows": rows} for a, b, rows in truth["together"]]
    return {"complete_rows": truth["complete_rows"], "columns": columns, "together": together}


def _known(
    rng: Rng, chance: Any, right: Any, wrong: Any = NOTHING, *, value: Any = None, problem: str = "binary"
) -> Known:
    rows, test = base(rng, problem), random_test(rng)
    rows["place"] = rng.choice(["A", "B", "C", "D"], ROWS)
    rows.insert(2, "gap", rng.normal(size=ROWS).round(3) if value is None else value(rows, rng))
    gone = rng.random(ROWS) < chance(rows)
    rows.loc[gone, "gap"] = np.nan
    metric = "rmse" if problem == "regression" else "roc-auc"
    return Known(rows, test, {"gap": right}, {"gap": wrong}, metric)


def _rising(level: Array, share: float = 0.3, steepness: float = 3.0) -> Array:
    return np.asarray(1 / (1 + np.exp(-(steepness * (level - np.quantile(level, 1 - share))))))


def at_random(rng: Rng) -> Known:
    return _known(rng, lambda rows: np.full(ROWS, 0.25), NOTHING, ("MAR", ["f0"]))


def rises_with_number(rng: Rng) -> Known:
    return _known(rng, lambda rows: _rising(rows["f2"]), ("MAR", ["f2"]))


def both_ends(rng: Rng) -> Known:
    return _known(rng, lambda rows: np.where(np.abs(rows["f3"]) > 1.1, 0.7, 0.06), ("MAR", ["f3"]))


def by_place(rng: Rng) -> Known:
    return _known(rng, lambda rows: rows["place"].map({"A": 0.6, "B": 0.1, "C": 0.1, "D": 0.4}), ("MAR", ["place"]))


def by_target(rng: Rng) -> Known:
    return _known(rng, lambda rows: np.where(rows["y"] == 1, 0.5, 0.08), ("MAR", ["y"]), ("MAR", ["f2"]))


def by_numeric_target(rng: Rng) -> Known:
    return _known(rng, lambda rows: _rising(rows["y"], 0.2), ("MAR", ["y"]), problem="regression")


def by_target_and_not_proxy(rng: Rng) -> Known:
    return _known(rng, lambda rows: np.where(rows["y"] == 1, 0.45, 0.05), ("MAR", ["y"]), ("MAR", ["f0"]))


def by_two_signs(rng: Rng) -> Known:
    return _known(
        rng, lambda rows: np.where((rows["f2"] > 0) ^ (rows["f3"] > 0), 0.55, 0.05), ("MAR", ["f2", "f3"]), NOTHING
    )


def by_place_and_sign(rng: Rng) -> Known:
    def chance(rows: Any) -> Array:
        return np.where(rows["place"].isin(["A", "B"]) == (rows["f2"] > 0), 0.5, 0.04)

    return _known(rng, chance, ("MAR", ["place", "f2"]))


def own_value(rng: Rng) -> Known:
    """The column tells the target, and others tell the column."""
    rows, test = base(rng), random_test(rng)
    own = (rows["f0"] + rows["f2"] + rows["f3"] + rng.normal(0, 0.7, ROWS)).round(3)
    rows["y"] = (own + rng.normal(0, 1, ROWS) > 0).astype(int)
    rows.insert(2, "gap", own.where(rng.random(ROWS) > _rising(own.to_numpy())))
    return Known(rows, test, {"gap": ("MNAR", [])}, {"gap": NOTHING})


def _of_others(rows: Any, rng: Rng) -> Array:
    return np.asarray((rows["f0"] + rows["f2"] + rng.normal(0, 0.7, ROWS)).round(3))


def not_own_value(rng: Rng) -> Known:
    """Others tell the column's value, which would tell its gaps if these were of large values."""
    return _known(rng, lambda rows: np.full(ROWS, 0.25), NOTHING, ("MNAR", []), value=_of_others)


def number_and_not_own_value(rng: Rng) -> Known:
    return _known(rng, lambda rows: _rising(rows["f3"]), ("MAR", ["f3"]), ("MNAR", []), value=_of_others)


def weak(rng: Rng) -> Known:
    return _known(rng, lambda rows: np.where(rows["f2"] > 0, 0.24, 0.1), ("MAR", ["f2"]))


def yes_no(rng: Rng) -> Known:
    def chance(rows: Any) -> Array:
        return np.where(rows["f1"] > 0.8, 0.6, 0.05)

    return _known(rng, chance, ("MAR", ["f1"]), value=lambda rows, r: r.choice(["yes", "no"], ROWS))


def in_the_same_rows(rng: Rng) -> Known:
    """Two columns that are missing together explain nothing of each other: either mechanism may be claimed."""
    known = _known(rng, lambda rows: np.full(ROWS, 0.25), NOTHING)
    rows = known.rows.assign(twin=rng.normal(size=ROWS).round(3)).assign(
        twin=lambda table: table["twin"].where(table["gap"].notna())
    )
    right, wrong = {"gap": ("MAR", ["twin"]), "twin": NOTHING}, dict.fromkeys(("gap", "twin"), ("MAR", ["f0"]))
    return Known(rows, known.test, right, wrong)


def few_rows_with_many_gaps(rng: Rng) -> Known:
    """Gaps at random, but for four rows that lack nearly all: these may be explained by each other, or by nothing."""
    known = _known(rng, lambda rows: np.full(ROWS, 0.015), NOTHING, ("MAR", ["f0"]))
    items = pd.DataFrame(rng.integers(1, 6, (ROWS, 12)).astype(float)).add_prefix("item")
    items = items.mask(rng.random(items.shape) < 0.015)
    items.iloc[np.flatnonzero(~known.test)[:4]] = np.nan
    rows = known.rows.join(items)
    rows.loc[np.flatnonzero(~known.test)[:4], "gap"] = np.nan
    names = ["gap", *items]
    return Known(rows, known.test, dict.fromkeys(names, NOTHING), dict.fromkeys(names, ("MAR", ["f0"])))


def by_year_within_cities(rng: Rng) -> Known:
    """Houses sold in Texas (plotnine's data of ggplot2, MIT), with other cities in the test: they list houses from some
    year on. Folds that split a city show only that each has its own gaps.
    """
    table = pd.read_csv(shipped("plotnine", "data", "txhousing.csv")).drop(columns=["volume", "median"])
    rows = table[table["sales"].notna()].rename(columns={"sales": "y"})
    right, wrong = ({name: ("MAR", [driver]) for name in ("listings", "inventory")} for driver in ("year", "city"))
    return Known(rows.assign(id=rng.permutation(len(rows))), whole("city")(rows).to_numpy(), right, wrong, "rmse")


KINDS = {
    kind.__name__: kind
    for kind in (
        *(at_random, rises_with_number, both_ends, by_place, by_target, by_numeric_target, by_target_and_not_proxy),
        *(by_two_signs, by_place_and_sign, own_value, not_own_value, number_and_not_own_value, weak, yes_no),
        *(by_year_within_cities, in_the_same_rows, few_rows_with_many_gaps),
    )
}
