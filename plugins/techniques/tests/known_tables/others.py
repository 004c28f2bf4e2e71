"""Statistics of the target in other rows: leaks of leave-one-out means and sums, and an honest mean of years before."""

from __future__ import annotations

import numpy as np
import pandas as pd

from known_tables import Known, Rng, base, random_test


def _of_others(rng: Rng, problem: str, *, total: bool, metric: str) -> Known:
    """A statistic of the target in other training rows of a shop, a number; test rows have that of all of them."""
    rows, test = base(rng, problem), random_test(rng)
    shop, y = pd.Series(7 * rng.integers(1, 40, len(rows))), rows["y"].astype(float)
    sums, sizes = (y[~test].groupby(shop[~test]).agg(how) for how in ("sum", "count"))
    others, count = shop.map(sums) - np.where(test, 0.0, y), shop.map(sizes) - np.where(test, 0, 1)
    rows.insert(3, "shop", shop)
    rows.insert(3, "past", (others if total else others / count).round(4))
    return Known(rows, test, [["past"]], [["shop"]], metric)


def mean_of_others(rng: Rng) -> Known:
    return _of_others(rng, "binary", total=False, metric="roc-auc")


def sum_of_others(rng: Rng) -> Known:
    return _of_others(rng, "regression", total=True, metric="rmse")


def honest_mean_of_shop(rng: Rng) -> Known:
    """The mean of a shop in years before, of which all rows of it have the same."""
    rows = base(rng, "regression")
    level = rng.normal(size=40)
    shop = rng.integers(0, 40, len(rows))
    rows["y"] += level[shop]
    rows.insert(3, "shop", 7 * shop)
    rows.insert(3, "past", (level + 0.3 * rng.normal(size=40))[shop].round(3))
    return Known(rows, random_test(rng), [], [["past"]])


OF_OTHERS = (mean_of_others, sum_of_others, honest_mean_of_shop)
