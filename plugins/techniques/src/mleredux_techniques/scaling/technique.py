"""Other units, long tails and outliers, and columns whose order of magnitude is predictive of the target."""

from __future__ import annotations

import numpy as np

from mleredux_techniques._kit.data.columns import ORDER_METRICS
from mleredux_techniques._kit.data.dataset import Array, Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques._kit.planting import instances

KINDS = ("unit", "tail", "outliers", "as it is", "as it is")


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Add columns with very long tails; give numbers another unit, a long tail or outliers, or leave them unchanged."""
    data, done = dataset, ["tail"]
    for name in instances.of_the_base(dataset):
        kind = str(rng.choice(KINDS))
        both = dataset.rows[name].to_numpy(dtype=float)
        ours = both[: len(dataset.train)]
        middle, spread = float(np.nanmean(ours)), float(np.nanstd(ours)) or 1.0
        if kind == "unit":
            both = both * 10.0 ** int(rng.choice([-4, -3, 3, 4, 5]))
        elif kind == "tail":
            both = np.round(np.exp(1.5 * np.clip((both - middle) / spread, -4, 4)), 4)
        elif kind == "outliers":
            hit = rng.random(len(both)) < float(rng.uniform(0.06, 0.09))
            far = spread * rng.choice([-1, 1], len(both)) * rng.uniform(15, 60, len(both))
            both = np.where(hit, np.round(middle + far, 3), both)
        done.append(kind)
        data = instances.assigned(data, name, both)
    columns: dict[str, Array] = {}
    # a column has the same order as its logarithm, so for rank metrics many weak columns are added
    count, noise = (8, (2.5, 3.0)) if dataset.metric in ORDER_METRICS else (2, (0.4, 0.6))
    for name in instances.fresh_names(dataset, rng, count):
        level = instances.levels(dataset, rng, noise=float(rng.uniform(*noise)))
        pace, unit = float(rng.uniform(3.0, 4.0)), 10.0 ** int(rng.choice([-2, 0, 2, 3]))
        columns[name] = np.array([float(f"{value:.5g}") for value in unit * np.exp(pace * level)])
    return instances.merged(instances.with_values(data, columns, rng), sorted(set(done) - {"as it is"}))


technique = declared(__package__, plant)
