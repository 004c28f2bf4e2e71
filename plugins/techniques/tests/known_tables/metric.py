"""Tables of which it is known what the metric rewards."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from mleredux_techniques.kit import Dataset, Instance
from mleredux_techniques.metric.grading import solution
from technique_documents.bases import base_of

from known_tables import Known, Rng, base, random_test

ROWS = 300


def _known(rng: Rng, metric: str, right: dict[str, Any], wrong: dict[str, Any]) -> Known:
    numbers = metric in ("mae", "rmse", "rmsle", "mape", "spearman", "pearson", "r2")
    table = base(rng, "regression" if numbers else "binary", ROWS)
    if numbers:
        table["y"] = np.round(20 * np.exp(0.8 * table["y"]), 2)
    return Known(table, random_test(rng, ROWS), right, wrong, metric)


def document(claims: dict[str, Any], truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    """The truth with claims; a functional's name stands for its value, a class for all of its share."""
    known = dataset.train[dataset.target]
    told = solution(Instance(dataset, truth, base_of(dataset)))
    constants: dict[str, Callable[[], Any]] = {
        "mean": lambda: float(known.mean()),
        "median": lambda: float(known.median()),
        "log_mean": lambda: float(np.expm1(np.log1p(known).mean())),
        "shares": lambda: known.value_counts(normalize=True).to_dict(),
    }
    constant = constants.get(claims["constant"], lambda: {claims["constant"]: 1.0})()
    return {**told, **claims, "constant": constant}


def _case(metric: str, right: str, wrong: str, ignores: list[str]) -> Callable[[Rng], Known]:
    """The right document names the best constant and what the metric ignores; the wrong one the opposite."""
    numbers = ["shift", "scale", "order_preserving"]
    every = numbers if right in ("mean", "median", "log_mean") else ["sharpening", "class_weights"]
    others = [name for name in every if name not in ignores]
    wrongs = {"constant": wrong, "ignores": others or ["scale"], "score": -9.0, "constant_score": -9.0}
    return partial(_known, metric=metric, right={"constant": right, "ignores": ignores}, wrong=wrongs)


KINDS: dict[str, Callable[[Rng], Known]] = {
    "mae": _case("mae", "median", "mean", []),
    "rmsle": _case("rmsle", "log_mean", "mean", []),
    "log_loss": _case("log-loss", "shares", "1", []),
    "accuracy": _case("accuracy", "0", "1", ["sharpening"]),
    "roc_auc": _case("roc-auc", "shares", "1", ["sharpening", "class_weights"]),
    "f1": _case("f1", "0", "1", ["sharpening"]),
}
