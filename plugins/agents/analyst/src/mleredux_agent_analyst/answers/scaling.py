"""Location, spread and shape of numeric columns, and scalers chosen by shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_agent_analyst.tables import Array, Tables

SKEWED = 1.0
OUTLYING = 0.05


def analyse(tables: Tables) -> dict[str, Any]:
    """Return the document: logarithms for long right tails, ranks for outliers, otherwise standardization.

    A thorough analysis recommends ranks for all long tails, since a logarithm leaves some of them long.
    """
    features = []
    for name in tables.of_kind("number"):
        values = tables.train[name].dropna().to_numpy(dtype=float)
        if len(np.unique(values)) > 2:
            features.append(_describe(name, values, tables.thorough))
    deviations = [feature["std"] for feature in features] or [1.0]
    return {
        "features": features,
        "spread": max(1.0, max(deviations) / max(min(deviations), 1e-300)),
        "not_needed_for": ["decision_tree", "gradient_boosted_trees", "random_forest"],
    }


def _describe(name: str, values: Array, thorough: bool) -> dict[str, Any]:
    mean, std = float(values.mean()), float(values.std())
    skewness = float((((values - mean) / std) ** 3).mean()) if std else 0.0
    low, high = np.quantile(values, [0.25, 0.75])
    reach = 1.5 * (high - low)
    outlying = float(((values < low - reach) | (values > high + reach)).mean())
    if skewness > SKEWED and values.min() >= 0 and not thorough:
        scaler: dict[str, Any] = {"name": "log1p"}
    elif outlying > OUTLYING or (thorough and abs(skewness) > SKEWED):
        scaler = {"name": "QuantileTransformer", "output_distribution": "normal"}
    else:
        scaler = {"name": "StandardScaler"}
    return {
        "column": name,
        "mean": mean,
        "std": std,
        "skewed": abs(skewness) > SKEWED,
        "outliers": outlying > OUTLYING,
        "scaler": scaler,
    }
