"""Gaps of other mechanisms. Claims as those of `known_tables.missing`, of column `gap`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from known_tables import Array, Known, Rng
from known_tables.missing import NOTHING

from held_tables import held_out, mixed, put


def _gaps(
    rng: Rng, size: int, chance: Any, right: Any, wrong: Any = NOTHING, *, problem: str = "binary", prepare: Any = None
) -> Known:
    rows = mixed(rng, size, problem)
    if prepare is not None:
        prepare(rows, rng)
    told = rng.gamma(3, 2, size).round(2)
    gone = rng.random(size) < np.asarray(chance(rows))
    metric = {"regression": "rmse", "multiclass": "log-loss"}.get(problem, "roc-auc")
    return Known(
        put(rows, gap=pd.Series(told).where(~gone)), held_out(rng, size), {"gap": right}, {"gap": wrong}, metric
    )


def one_branch(rng: Rng) -> Known:
    """One of forty branches never measures it."""

    def prepare(rows: pd.DataFrame, r: Rng) -> None:
        put(rows, branch=[f"B{k:02d}" for k in r.integers(0, 40, len(rows))])

    return _gaps(
        rng, 1500, lambda rows: np.where(rows["branch"] == "B07", 1.0, 0.03), ("MAR", ["branch"]), prepare=prepare
    )


def since_a_day(rng: Rng) -> Known:
    """An instrument was out of order in one season."""

    def prepare(rows: pd.DataFrame, r: Rng) -> None:
        days = pd.Timestamp("2021-01-01") + pd.to_timedelta(r.integers(0, 600, len(rows)), unit="D")
        put(rows, day=days.strftime("%Y-%m-%d"))

    def chance(rows: pd.DataFrame) -> Array:
        return np.where(rows["day"].between("2021-09-01", "2021-12-01"), 0.8, 0.04)

    return _gaps(rng, 900, chance, ("MAR", ["day"]), prepare=prepare)


def by_row_number(rng: Rng) -> Known:
    """Early rows of the register lack it."""
    return _gaps(rng, 900, lambda rows: np.where(rows["id"] < 350, 0.6, 0.05), ("MAR", ["id"]))


def not_asked(rng: Rng) -> Known:
    """Who answers no is not asked."""

    def prepare(rows: pd.DataFrame, r: Rng) -> None:
        put(rows, owns=r.choice(["yes", "no"], len(rows), p=[0.7, 0.3]))

    return _gaps(rng, 700, lambda rows: np.where(rows["owns"] == "no", 1.0, 0.0), ("MAR", ["owns"]), prepare=prepare)


def one_or_the_other(rng: Rng) -> Known:
    """Of two tests, one was made."""

    def prepare(rows: pd.DataFrame, r: Rng) -> None:
        put(rows, other=pd.Series(r.normal(size=len(rows)).round(2)).where(r.random(len(rows)) < 0.5))

    known = _gaps(
        rng, 900, lambda rows: np.where(rows["other"].notna(), 0.9, 0.05), ("MAR", ["other"]), prepare=prepare
    )
    claims = {"other": ("MAR", ["gap"])}
    return Known(known.rows, known.test, {**claims, **known.right}, {"gap": NOTHING, "other": NOTHING})


def middle_of_target(rng: Rng) -> Known:
    """Results in the middle are not investigated."""

    def chance(rows: pd.DataFrame) -> Array:
        rank = rows["y"].rank(pct=True)
        return np.where(rank.between(0.35, 0.65), 0.8, 0.1)

    return _gaps(rng, 1000, chance, ("MAR", ["y"]), ("MAR", ["gauge"]), problem="regression")


def one_class(rng: Rng) -> Known:
    return _gaps(rng, 900, lambda rows: np.where(rows["y"] == "cedar", 0.7, 0.1), ("MAR", ["y"]), problem="multiclass")


def product_of_two(rng: Rng) -> Known:
    """Two numbers, only if both are large."""

    def chance(rows: pd.DataFrame) -> Array:
        return np.where(rows["slope"] * rows["gauge"] > 0.15, 0.6, 0.05)

    return _gaps(rng, 1300, chance, ("MAR", ["slope", "gauge"]), NOTHING)


def nothing_at_all(rng: Rng) -> Known:
    return _gaps(rng, 600, lambda rows: np.full(len(rows), 0.15), NOTHING, ("MAR", ["area"]))


def nothing_of_many(rng: Rng) -> Known:
    """Forty columns, none of which tells of the gap."""

    def prepare(rows: pd.DataFrame, r: Rng) -> None:
        put(rows, **{f"n{k}": r.normal(size=len(rows)).round(3) for k in range(40)})

    return _gaps(rng, 500, lambda rows: np.full(len(rows), 0.3), NOTHING, ("MAR", ["n4"]), prepare=prepare)


def beyond_the_scale(rng: Rng) -> Known:
    """High readings are off the scale; a second instrument shows how high they are."""
    rows = mixed(rng, 1200, "regression")
    own = 40 + 8 * rng.normal(size=1200)
    rows["y"] = (0.5 * own + 2 * rows["slope"] + rng.normal(0, 2, 1200)).round(2)
    rows = put(rows, gap=pd.Series(own.round(2)).where(own < 46), second=(own + rng.normal(0, 2, 1200)).round(1))
    return Known(rows, held_out(rng, 1200), {"gap": ("MNAR", [])}, {"gap": NOTHING}, "rmse")


def a_few_rows(rng: Rng) -> Known:
    return _gaps(rng, 350, lambda rows: np.where(rows["site"] == "east", 0.7, 0.1), ("MAR", ["site"]))


KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(one_branch, since_a_day, by_row_number, not_asked, one_or_the_other, middle_of_target, one_class),
        *(product_of_two, nothing_at_all, nothing_of_many, beyond_the_scale, a_few_rows),
    )
}
