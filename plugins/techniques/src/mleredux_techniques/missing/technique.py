"""Missing values: completely at random, at random given another column, or depending on the value itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_techniques._kit.data.association import ranks, separation
from mleredux_techniques._kit.data.dataset import Array, Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques._kit.planting import instances

MECHANISMS = ("MCAR", "MAR", "U-shaped MAR", "MNAR")
NOISE, FEWEST = 0.6, 10
"""Noise of the predictive columns that are missing where their values are high, or low."""


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Remove 10 to 35 % of the values of two to four columns in both tables, each by its own mechanism; one may share
    its missing rows with another column. One or two new columns lack values mostly where they are most predictive.
    """
    names = instances.fresh_names(dataset, rng, int(rng.integers(1, 3)))
    columns: dict[str, Array] = {}
    for name in names:
        values = instances.levels(dataset, rng, noise=NOISE)
        columns[name] = np.round(values * float(rng.uniform(0.5, 20)) + float(rng.uniform(-30, 30)), 3)
    whole = instances.with_values(dataset, columns, rng)
    usable = instances.of_the_base(dataset)
    order = [str(name) for name in rng.permutation(usable)]
    driver, rest = (order[0] if order else names[0]), order[1:]
    chosen = rest[: int(rng.integers(1, 3))]
    data = whole
    facts: list[dict[str, Any]] = []
    for name in (*names, *chosen):
        mechanism = "MNAR" if name in names else str(rng.choice(MECHANISMS))
        share, steepness = float(rng.uniform(0.1, 0.35)), float(rng.uniform(2.5, 4.0)) * float(rng.choice([-1, 1]))
        if name in names:
            share, steepness = float(rng.uniform(0.25, 0.35)), 6.0 * float(rng.choice([-1, 1]))
        cause = {"MCAR": None, "MNAR": name}.get(mechanism, driver)
        level = None if cause is None else instances.standardised(whole.rows[cause].to_numpy(float))
        if mechanism.startswith("U") and level is not None:
            mechanism, level = "MAR", instances.standardised(np.abs(level))
        gone = _missing_cells(level, share, steepness, len(whole.train) + len(whole.test), rng)
        partners = [name]
        if mechanism == "MCAR" and rng.random() < 0.7:
            partners += [other for other in rest if other not in chosen][:1]
        for partner in partners:
            values = data.rows[partner].to_numpy(dtype=float)
            data = instances.assigned(data, partner, np.where(gone, np.nan, values))
            half = {"MCAR": [], "MAR": ["MNAR"], "MNAR": ["MAR"]}[mechanism]
            facts.append({"column": partner, "mechanism": mechanism, "planted": True, "depends_on": [], "half": half})
    for fact in facts:
        if fact["mechanism"] == "MAR":
            fact["depends_on"] = _predictive_columns(data, fact["column"], driver)
    return instances.merged(data, sorted({fact["mechanism"] for fact in facts}), missing=facts)


def _missing_cells(level: Array | None, share: float, steepness: float, count: int, rng: np.random.Generator) -> Array:
    """Choose the values to remove, with a logistic probability that increases with the level and has the given mean."""
    from scipy.optimize import brentq
    from scipy.special import expit

    if level is None:
        return np.asarray(rng.random(count) < share)
    middle = brentq(lambda middle: expit(steepness * level + middle).mean() - share, -20, 20, xtol=1e-14)
    return np.asarray(rng.random(count) < expit(steepness * level + middle))


def _predictive_columns(dataset: Dataset, column: str, driver: str) -> list[str]:
    """Return the driver, and the columns so similar that they are equally predictive."""
    gap, by_name = dataset.train[column].isna().to_numpy(), {}
    for name in dataset.of_kind("number", "boolean"):
        known = dataset.train[name].notna().to_numpy()
        if name != column and min((gap & known).sum(), (~gap & known).sum()) >= FEWEST:
            by_name[name] = separation(ranks(dataset.train[name].to_numpy(dtype=float)[known]), gap[known])
    alike = [name for name, strength in by_name.items() if strength >= 0.9 * by_name.get(driver, 1.0)]
    return [driver, *(name for name in alike if name != driver)]


technique = declared(__package__, plant)
