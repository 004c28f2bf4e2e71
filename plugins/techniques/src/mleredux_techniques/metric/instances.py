"""Predictions that are off in a known way: too sure, weighted by class, inverted, or on a wrong scale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.instances import clean, merged, pooled
from mleredux_techniques._kit.predictions import KEY

ORDER = ("roc-auc", "average-precision", "spearman")
"""Metrics of the order of scores, which only another order changes."""


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Draw a table of its own and a distortion of predictions; a numeric target gets a long tail."""
    made = clean(dataset, "metric", rng)
    if dataset.problem == "regression":
        factor = float(np.exp(rng.choice([-1, 1]) * rng.uniform(0.35, 0.6)))
        return merged(_skewed(made, rng), ["factor", "skewed_target"], **{KEY: {"factor": factor}})
    count = len(made.classes)
    weights = np.exp(rng.permutation(np.linspace(-1, 1, count)) * rng.uniform(1.4, 2.2))
    how: dict[str, Any] = {"power": float(np.exp(rng.uniform(0.9, 1.5))), "weights": weights.round(4).tolist()}
    kinds = ["sharpened", "weighted"]
    if count == 2 and dataset.metric in ORDER:
        how["inverted"] = True
        kinds.append("inverted")
    return merged(made, kinds, **{KEY: how})


def _skewed(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Replace the target by one in the same order with a long tail."""
    values = pooled(dataset)[dataset.target].to_numpy(dtype=float)
    values = values + 1e-6 * rng.standard_normal(len(values)) * values.std()
    place = (np.argsort(np.argsort(values)) + 0.5) / len(values)
    target = np.round(float(10 ** rng.uniform(1, 3)) * np.exp(float(rng.uniform(0.5, 0.8)) * ndtri(place)), 3)
    cut = len(dataset.train)
    return replace(
        dataset,
        train=dataset.train.assign(**{dataset.target: target[:cut]}),
        test=dataset.test.assign(**{dataset.target: target[cut:]}),
    )
