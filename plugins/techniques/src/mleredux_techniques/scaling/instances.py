"""Other units, long tails and outliers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.instances import lively, need

KINDS = ("unit", "tail", "outliers", "as it is")


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Give each numeric feature another unit, a long tail, outliers, or no change; the same in both tables."""
    usable = lively(dataset)
    need(dataset, "scaling", usable, 2, "numeric features with eight or more values")
    train, test = dataset.train.copy(), dataset.test.copy()
    done = []
    for place, name in enumerate(str(name) for name in rng.permutation(usable)):
        kind = KINDS[place] if place < 3 else str(rng.choice(KINDS))
        ours, theirs = train[name].to_numpy(dtype=float), test[name].to_numpy(dtype=float)
        middle, spread = float(np.nanmean(ours)), float(np.nanstd(ours)) or 1.0
        both = np.concatenate([ours, theirs])
        if kind == "unit":
            both = both * 10.0 ** int(rng.choice([-4, -3, 3, 4, 5]))
        elif kind == "tail":
            both = np.exp(1.5 * np.clip((both - middle) / spread, -4, 4))
        elif kind == "outliers":
            hit = rng.random(len(both)) < float(rng.uniform(0.06, 0.09))
            both = np.where(
                hit, middle + spread * rng.choice([-1, 1], len(both)) * rng.uniform(15, 60, len(both)), both
            )
        done.append(kind)
        train[name], test[name] = both[: len(ours)], both[len(ours) :]
    return replace(dataset, train=train, test=test, planted={"kinds": sorted(set(done) - {"as it is"})})
