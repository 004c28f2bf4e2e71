"""Numbers of known shape. Claims are whether `it` is skewed, has outliers, and its scaler."""

from __future__ import annotations

from typing import Any

import numpy as np
from mleredux_techniques.kit import Dataset

from known_tables import ROWS, Array, Known, Rng, base, random_test

TREES = ["decision_tree", "gradient_boosted_trees", "random_forest"]
PLAIN = (False, False, "StandardScaler")


def document(claims: tuple[bool, bool, str], truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    features = []
    for name, fact in truth["features"].items():
        skewed, outliers, scaler = claims if name == "it" else PLAIN
        told = {"skewed": skewed, "outliers": outliers, "scaler": {"name": scaler}}
        features.append({"column": name, "mean": fact["mean"], "std": fact["std"], **told})
    return {"features": features, "spread": truth["spread"], "not_needed_for": TREES}


def _known(rng: Rng, values: Array, right: Any, wrong: Any) -> Known:
    rows, test = base(rng), random_test(rng)
    ranks = np.argsort(np.argsort(values)) / ROWS
    rows["y"] = (4 * ranks + rows["f0"] + rng.normal(0, 0.6, ROWS) > 2).astype(int)
    rows.insert(2, "it", values)
    return Known(rows, test, right, wrong)


def long_tail(rng: Rng) -> Known:
    return _known(rng, rng.lognormal(3, 1.4, ROWS), (True, True, "log1p"), PLAIN)


def left_tail(rng: Rng) -> Known:
    return _known(rng, 500 - rng.lognormal(2, 1.2, ROWS), (True, True, "QuantileTransformer"), PLAIN)


def waiting_times(rng: Rng) -> Known:
    return _known(rng, rng.gamma(1.0, 4.0, ROWS), (True, False, "PowerTransformer"), PLAIN)


def heavy_both(rng: Rng) -> Known:
    """Symmetric, whatever the skewness of the sample is."""
    return _known(rng, rng.standard_t(1.6, ROWS), (False, True, "RobustScaler"), PLAIN)


def wrong_readings(rng: Rng) -> Known:
    values = rng.normal(20, 3, ROWS)
    hit = rng.random(ROWS) < 0.08
    return _known(rng, np.where(hit, rng.choice([-900, 900], ROWS), values), (False, True, "RobustScaler"), PLAIN)


def large_unit(rng: Rng) -> Known:
    return _known(rng, rng.normal(0, 1, ROWS) * 1e6, PLAIN, (True, True, "none"))


def even_spread(rng: Rng) -> Known:
    return _known(rng, rng.uniform(0, 90, ROWS), PLAIN, (True, True, "log1p"))


KINDS = {
    kind.__name__: kind
    for kind in (long_tail, left_tail, waiting_times, heavy_both, wrong_readings, large_unit, even_spread)
}
