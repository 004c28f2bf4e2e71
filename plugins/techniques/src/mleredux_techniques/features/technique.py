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
    made = instances.with_level(instances.clean(dataset, "features", rng, numbers=6), rng, noise)
    rows = len(made.train) + len(made.test)
    counts = {"nothing": (16, 35), "alone": (1, 5), "together": (1, 4), "copy": (0, 3)}
    kinds = [kind for kind, (low, high) in counts.items() for _ in range(int(rng.integers(low, high)))]
    names = iter(instances.fresh_names(made, rng, 3 * len(kinds)))
    told: dict[str, list[Any]] = {"alone": ["size", "rate"], "together": [], "nothing": [], "pairs": []}
    columns: dict[str, Array] = {}
    for kind in kinds:
        one = next(names)
        level = instances.levels(made, rng, noise=float(rng.uniform(0.3, 0.6)))
        if kind == "nothing":
            columns[one] = rng.standard_normal(rows)
        elif kind == "alone":  # the distance from the middle is predictive
            columns[one] = rng.choice([-1, 1], rows) * -ndtri((np.argsort(np.argsort(level)) + 0.5) / (2 * rows))
        elif kind == "together":  # the signs of both together are predictive
            other = next(names)
            signs = rng.choice([-1, 1], rows)
            columns[one] = signs * np.abs(rng.standard_normal(rows))
            columns[other] = signs * np.where(level > 0, 1, -1) * np.abs(rng.standard_normal(rows))
            told["pairs"].append([one, other])
            told[kind].append(other)
        else:
            columns[one] = instances.standardised(level + 0.1 * rng.standard_normal(rows))
            columns[other := next(names)] = instances.standardised(level + 0.1 * rng.standard_normal(rows))
            told["alone"].append(other)
        told["alone" if kind == "copy" else kind].append(one)
    scaled = {name: np.round(values * 10.0 ** float(rng.uniform(-2, 3)), 4) for name, values in columns.items()}
    made = instances.merged(instances.with_values(made, scaled, rng), sorted(set(kinds)), **{KEY: told})
    return instances.skewed(made, rng) if dataset.problem == "regression" and rng.random() < 0.5 else made


technique = declared(__package__, plant)
