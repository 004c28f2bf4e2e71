"""Tables of which it is known what drifts, and what does harm."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from mleredux_techniques.kit import Dataset, Instance
from mleredux_techniques.shift.grading import solution
from natural import whole
from natural.tables import diamonds, housing
from technique_documents.bases import base_of

from known_tables import Known, Rng, base, random_test

ROWS = 800


def _known(rng: Rng, kind: str, problem: str = "binary") -> Known:
    """What a document claims besides distances; the wrong one overlooks it, or takes harmless drift for harm."""
    table, test = base(rng, problem, ROWS), random_test(rng, ROWS)
    level = table["y"].rank(method="first").to_numpy() / ROWS
    right: dict[str, Any] = {"broken": [], "target": "target", "changes": None}
    wrong = dict(right)
    if kind == "sensor":
        table["sensor"] = level + 0.2 * rng.standard_normal(ROWS) + 2.0 * test
        table["noise"] = rng.standard_normal(ROWS) + 2.0 * test
        right["broken"], wrong["broken"] = ["sensor"], ["noise"]
    elif kind == "target":
        kept = ~test | (rng.random(ROWS) < np.where(level > 0.5, 1.0, 0.2))
        table, test = table[kept].reset_index(drop=True), test[kept]
        wrong["target"] = "train"
    elif kind == "turning":
        week = rng.permutation(ROWS)
        table["week"], test = week, week >= 0.7 * ROWS
        table["f4"] = np.where(week < 0.35 * ROWS, -1, 1) * (level - 0.5) + 0.1 * rng.standard_normal(ROWS)
        right["changes"] = "week"
    return Known(table, test, right, wrong, "rmse" if problem == "regression" else "log-loss")


def document(claims: dict[str, Any], truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    """Distances are those of the tables."""
    best = solution(Instance(dataset, truth, base_of(dataset)))
    features = [{**one, "broken": one["column"] in claims["broken"]} for one in best["features"]]
    target = truth[claims["target"]]
    told = {"target": target.get("", target), "changes": claims["changes"]}
    return {**best, **told, "features": features, "drop": [], "recent": 1.0}


def sizes(rng: Rng) -> Known:
    """Diamonds (ggplot2's, MIT) whose sizes were not measured in the test: one does little harm beside the others."""
    table = diamonds().head(2 * ROWS).rename(columns={"price": "y", "y": "width"})
    test = random_test(rng, len(table))
    table.loc[test, ["x", "width", "z"]] = 0.0
    right = {"broken": ["x", "width", "z"], "target": "target", "changes": None}
    return Known(table.assign(id=rng.permutation(len(table))), test, right, {**right, "broken": []}, "rmsle")


def other_cities(rng: Rng) -> Known:
    """Houses sold in Texas (ggplot2's, MIT), with other cities in the test: prices of few cities differ by chance."""
    rows = housing().rename(columns={"median": "y"})
    right = {"broken": [], "target": "train", "changes": None}
    test = whole("city")(rows).to_numpy()
    return Known(rows.assign(id=rng.permutation(len(rows))), test, right, {**right, "broken": ["sales"]}, "mae")


def file_order(rng: Rng, turn: float = 0.5) -> Known:
    """Rows in the order of time, as their ids show; a relation turned after this share of the training rows."""
    table = base(rng, "regression", ROWS)
    level, place = table["y"].rank(method="first").to_numpy() / ROWS, np.arange(ROWS)
    table["f4"] = np.where(place < turn * 0.7 * ROWS, -1, 1) * (level - 0.5) + 0.1 * rng.standard_normal(ROWS)
    right: dict[str, Any] = {"broken": [], "target": "target", "changes": "id"}
    return Known(table.assign(id=place), place >= 0.7 * ROWS, right, {**right, "changes": None}, "rmse")


KINDS: dict[str, Callable[[Rng], Known]] = {
    "sensor": partial(_known, kind="sensor"),
    "target": partial(_known, kind="target"),
    "turning": partial(_known, kind="turning", problem="regression"),
    "sizes": sizes,
    "other_cities": other_cities,
    "file_order": file_order,
    "turned_late": partial(file_order, turn=0.75),
}
