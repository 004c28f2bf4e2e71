"""Columns that are predictive of the target in a form that ranks miss, only in pairs, redundantly, or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from mleredux_techniques._kit.data.dataset import Array, Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques._kit.planting import instances
from mleredux_techniques.features.grading import KEY

NOISE = 0.9
"""Noise shared by all planted columns, so that together they do not reveal the classes."""


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Draw a separate table; all planted columns are normally distributed, so that only the target sets them apart."""
    noise = 0.0 if dataset.problem == "regression" else NOISE
    data = instances.with_level(instances.clean(dataset, "features", rng, numbers=6), rng, noise)
    rows = len(data.train) + len(data.test)
    counts = {"nothing": (16, 35), "alone": (1, 5), "together": (1, 4), "copy": (0, 3)}
    kinds = [kind for kind, (low, high) in counts.items() for _ in range(int(rng.integers(low, high)))]
    names = iter(instances.fresh_names(data, rng, 3 * len(kinds)))
    facts: dict[str, list[Any]] = {"alone": ["size", "rate"], "together": [], "nothing": [], "pairs": []}
    columns: dict[str, Array] = {}
    for kind in kinds:
        feature = next(names)
        level = instances.levels(data, rng, noise=float(rng.uniform(0.3, 0.6)))
        if kind == "nothing":
            columns[feature] = rng.standard_normal(rows)
        elif kind == "alone":  # the distance from the middle is predictive
            columns[feature] = rng.choice([-1, 1], rows) * -ndtri((np.argsort(np.argsort(level)) + 0.5) / (2 * rows))
        elif kind == "together":  # the signs of both together are predictive
            other = next(names)
            signs = rng.choice([-1, 1], rows)
            columns[feature] = signs * np.abs(rng.standard_normal(rows))
            columns[other] = signs * np.where(level > 0, 1, -1) * np.abs(rng.standard_normal(rows))
            facts["pairs"].append([feature, other])
            facts[kind].append(other)
        else:
            columns[feature] = instances.standardised(level + 0.1 * rng.standard_normal(rows))
            columns[other := next(names)] = instances.standardised(level + 0.1 * rng.standard_normal(rows))
            facts["alone"].append(other)
        facts["alone" if kind == "copy" else kind].append(feature)
    scaled = {name: np.round(values * 10.0 ** float(rng.uniform(-2, 3)), 4) for name, values in columns.items()}
    data = instances.merged(instances.with_values(data, scaled, rng), sorted(set(kinds)), **{KEY: facts})
    return instances.skewed(data, rng) if dataset.problem == "regression" and rng.random() < 0.5 else data


technique = declared(__package__, plant)
