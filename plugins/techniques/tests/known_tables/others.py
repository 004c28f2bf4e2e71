"""Statistics of the target in other rows: leaks of leave-one-out means and sums; and honest columns: a mean of years
before, names of businesses, a column that predicts the test rows too, and seasons.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from known_tables import ROWS, Known, Rng, base, random_test


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


def honest_businesses(rng: Rng) -> Known:
    """Inspections of businesses, others in the test: a word that only some of them have there predicts by grouping."""
    business = np.repeat(np.arange(300), 8)
    level = rng.normal(size=300)
    words = np.array(["deli", "grill", "bakery", "bar"])[rng.integers(0, 4, 300)]
    test = np.arange(300) >= 210
    words[rng.permutation(np.argsort(np.where(test, -9.0, level))[-40:])[:7]] = "pool"
    rows = pd.DataFrame({"name": [f"{words[number]} no {number:03d}" for number in business]})
    rows["f0"] = rng.normal(size=len(rows)).round(3)
    rows["y"] = (level[business] + rng.normal(0, 0.3, len(rows)) + 0.5 * rows["f0"]).round(3)
    return Known(rows.assign(id=rng.permutation(len(rows))), test[business], [], [["name"]], "rmse")


def honest_strong(rng: Rng) -> Known:
    """A column that predicts the test as well as the training rows makes no score too good to be true."""
    rows, test = base(rng, "regression"), random_test(rng)
    return Known(rows.assign(size=rows["y"] + rng.normal(0, 0.1, ROWS)), test, [], [["size"]], "rmse")


def honest_seasons(rng: Rng) -> Known:
    """Temperatures by season and time of day: the test has other months, and less of the season."""
    days = pd.date_range("2024-01-01", periods=366, freq="D").repeat(8)
    hour = np.tile(np.arange(0, 24, 3), 366)
    season = -12 * np.cos(2 * np.pi * days.day_of_year / 366)
    level = season + 4 * np.sin(2 * np.pi * (hour - 8) / 24) + rng.normal(0, 2, 366).repeat(8)
    level += rng.normal(0, 1, len(hour))
    rows = pd.DataFrame({"id": np.arange(len(hour)), "day": days.strftime("%Y-%m-%d"), "month": days.month})
    rows = rows.assign(hour=hour, wind=rng.gamma(2, 3, len(hour)).round(1), y=np.asarray(level).round(1))
    return Known(rows, np.asarray(days.month > 8), [], [["hour"], ["month"]], "rmse")


OF_OTHERS = (mean_of_others, sum_of_others, honest_mean_of_shop, honest_businesses, honest_strong, honest_seasons)
