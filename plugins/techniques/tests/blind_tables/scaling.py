"""Numbers of other shapes. Claims are whether `it` is skewed, has outliers, and its scaler, and that of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from known_tables import Known, Rng
from mleredux_techniques.kit import Dataset

from blind_tables import at_random, with_columns

TREES = ["decision_tree", "gradient_boosted_trees", "random_forest"]


def document(claims: tuple[bool, bool, str], truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    """Figures by pandas; other columns are as normal as they were drawn."""
    features = []
    for name in truth["features"]:
        skewed, outliers, scaler = claims if name == "it" else (False, False, "StandardScaler")
        values = dataset.train[name].astype(float)
        told = {"skewed": skewed, "outliers": outliers, "scaler": {"name": scaler}}
        features.append({"column": name, "mean": float(values.mean()), "std": float(values.std(ddof=0)), **told})
    stds = [feature["std"] for feature in features]
    return {"features": features, "spread": max(stds) / min(stds), "not_needed_for": TREES}


def _assays(
    rng: Rng, size: int, it: Any, level: Any, right: Any, wrong: Any, metric: str = "rmse", **more: Any
) -> Known:
    """Two plain columns of which one tells, and `it`, of which the target depends by `level`."""
    acid, light = rng.normal(7, 0.8, size).round(3), rng.normal(300, 60, size).round(1)
    yields = 2 * np.asarray(level) + 1.2 * (acid - 7) + rng.normal(0, 0.7, size)
    y = (yields > np.quantile(yields, 0.6)).astype(int) if metric == "roc-auc" else (20 + 5 * yields).round(3)
    rows = pd.DataFrame({"id": np.arange(size), "acid": acid, "light": light, "y": y})
    return Known(with_columns(rows, it=it, **more), at_random(rng, size), right, wrong, metric)


def titers(rng: Rng) -> Known:
    """Concentrations over five orders of magnitude; the effect is by the order."""
    log = rng.normal(3, 1.8, 900)
    return _assays(
        rng, 900, np.exp(log).round(4), (log - 3) / 1.8, (True, True, "log1p"), (False, False, "MinMaxScaler")
    )


def scaled_before(rng: Rng) -> Known:
    """Centered and scaled by somebody else, next to a flag and a constant."""
    it = rng.normal(0, 1, 800)
    level = it
    flag, constant = rng.integers(0, 2, 800), np.full(800, 3)
    right, wrong = (False, False, "none"), (True, True, "QuantileTransformer")
    return _assays(rng, 800, it.round(4), level, right, wrong, flag=flag, format=constant)


def grams_and_kilograms(rng: Rng) -> Known:
    """Masses in grams or kilograms, as another column says."""
    log, grams = rng.normal(0, 0.6, 1000), rng.random(1000) < 0.5
    it = (np.exp(log) * np.where(grams, 1000, 1)).round(3)
    rows = {"unit": np.where(grams, "g", "kg")}
    right, wrong = (True, False, "log1p"), (False, False, "StandardScaler")
    return _assays(rng, 1000, it, log / 0.6, right, wrong, **rows)


def gross_errors(rng: Rng) -> Known:
    """Seven percent of the readings are wildly wrong, on both sides."""
    true = rng.normal(50, 5, 900)
    bad = rng.random(900) < 0.08
    it = np.where(
        bad, np.resize([-1, 1], 900)[np.argsort(np.argsort(~bad))] * rng.permutation(np.linspace(2e4, 6e4, 900)), true
    ).round(2)
    level = (true - 50) / 5 * ~bad
    return _assays(rng, 900, it, level, (False, True, "QuantileTransformer"), (False, False, "StandardScaler"))


def loud_noise(rng: Rng) -> Known:
    """A column that tells nothing has by far the largest unit."""
    it = rng.normal(5e5, 2e5, 700).round()
    return _assays(rng, 700, it, rng.normal(0, 0.1, 700), (False, False, "StandardScaler"), (False, False, "none"))


def minus_999(rng: Rng) -> Known:
    """A tenth of the values is -999, which stands for not measured."""
    true, gone = rng.normal(12, 2, 1000), rng.random(1000) < 0.1
    it = np.where(gone, -999, true).round(2)
    level = (true - 12) / 2 * ~gone
    return _assays(rng, 1000, it, level, (True, True, "QuantileTransformer"), (False, False, "MinMaxScaler"))


KINDS: dict[str, Any] = {
    kind.__name__: kind for kind in (titers, scaled_before, grams_and_kilograms, gross_errors, loud_noise, minus_999)
}
