"""Missing values: completely at random, at random given another column, or depending on the value itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mleredux_techniques._kit.association import tells_of
from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.instances import Array, lively, need, standardised

MECHANISMS = ("MCAR", "MAR", "MNAR")


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Remove 10 to 35 % of the values of two to four columns in both tables, each by its own mechanism; one may share
    its missing rows with another column. Values that are already missing stay missing.
    """
    usable = lively(dataset)
    need(dataset, "missing", usable, 3, "numeric features with eight or more values")
    order = [str(name) for name in rng.permutation(usable)]
    driver, rest = order[0], order[1:]
    columns = rest[: int(rng.integers(2, min(4, len(rest)) + 1))]
    train, test = dataset.train.copy(), dataset.test.copy()
    facts: list[dict[str, Any]] = []
    for place, name in enumerate(columns):
        mechanism = str(rng.permutation(MECHANISMS)[0]) if place else str(rng.permutation(["MAR", "MNAR"])[0])
        share, steepness = float(rng.uniform(0.1, 0.35)), float(rng.uniform(2.5, 4.0)) * float(rng.choice([-1, 1]))
        cause = {"MCAR": None, "MAR": driver, "MNAR": name}[mechanism]
        both = np.concatenate([dataset.train[name].to_numpy(float), dataset.test[name].to_numpy(float)])
        gone = _gone(_level(dataset, cause), share, steepness, len(both), rng)
        partners = [name]
        if mechanism == "MCAR" and place + 1 < len(rest) and rng.random() < 0.7:
            partners += [other for other in rest if other not in columns][:1]
        for partner in partners:
            train.loc[gone[: len(train)], partner] = np.nan
            test.loc[gone[len(train) :], partner] = np.nan
            facts.append({"column": partner, "mechanism": mechanism, "planted": True, **_rest(mechanism, cause)})
    made = replace(dataset, train=train, test=test)
    for fact in facts:
        if fact["mechanism"] == "MAR":
            fact["depends_on"] = _telling(made, fact["column"], driver)
    return replace(made, planted={"kinds": sorted({fact["mechanism"] for fact in facts}), "missing": facts})


def _rest(mechanism: str, cause: str | None) -> dict[str, Any]:
    return {
        "depends_on": [cause] if mechanism == "MAR" else [],
        "half": {"MCAR": [], "MAR": ["MNAR"], "MNAR": ["MAR"]}[mechanism],
    }


def _level(dataset: Dataset, cause: str | None) -> Array | None:
    if cause is None:
        return None
    return standardised(np.concatenate([dataset.train[cause].to_numpy(float), dataset.test[cause].to_numpy(float)]))


def _gone(level: Array | None, share: float, steepness: float, count: int, rng: np.random.Generator) -> Array:
    """Choose the values to remove: with a logistic probability that rises with the level, of the given mean."""
    if level is None:
        return np.asarray(rng.random(count) < share)
    low, high = -20.0, 20.0
    for _ in range(60):  # the intercept that yields the share
        middle = (low + high) / 2
        if (1 / (1 + np.exp(-(steepness * level + middle)))).mean() < share:
            low = middle
        else:
            high = middle
    return np.asarray(rng.random(count) < 1 / (1 + np.exp(-(steepness * level + low))))


def _telling(dataset: Dataset, column: str, driver: str) -> list[str]:
    """Return the driver, and the columns so similar that they are equally predictive."""
    gap = dataset.train[column].isna().to_numpy()
    told = {
        name: tells_of(gap, dataset.train[name], dataset.kinds[name])[0] for name in dataset.features if name != column
    }
    return [driver, *(name for name, strength in told.items() if name != driver and strength >= 0.9 * told[driver])]
