"""Predictions that are off in a known way: too sure, weighted by class, inverted, or on a wrong scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.instances import clean, merged, skewed
from mleredux_techniques._kit.predictions import KEY

ORDER = ("roc-auc", "average-precision", "spearman")
"""Metrics of the order of scores, which only another order changes."""


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Draw a table of its own and a distortion of predictions; a numeric target gets a long tail."""
    made = clean(dataset, "metric", rng)
    if dataset.problem == "regression":
        factor = float(np.exp(rng.choice([-1, 1]) * rng.uniform(0.35, 0.6)))
        return merged(skewed(made, rng), ["factor", "skewed_target"], **{KEY: {"factor": factor}})
    count = len(made.classes)
    weights = np.exp(rng.permutation(np.linspace(-1, 1, count)) * rng.uniform(1.4, 2.2))
    how: dict[str, Any] = {"power": float(np.exp(rng.uniform(0.9, 1.5))), "weights": weights.round(4).tolist()}
    kinds = ["sharpened", "weighted"]
    if count == 2 and dataset.metric in ORDER:
        how["inverted"] = True
        kinds.append("inverted")
    return merged(made, kinds, **{KEY: how})
