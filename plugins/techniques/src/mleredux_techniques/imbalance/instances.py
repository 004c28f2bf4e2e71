"""Changed class ratios: rows of some classes are removed from the training table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from mleredux.errors import NotApplicable

from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.instances import renumbered, resized

FEWEST = 12


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Thin out one or more classes, to a ratio between 1 and 60 as far as possible; the test is unchanged."""
    if dataset.problem == "regression":
        raise NotApplicable(
            f"imbalance does not apply to {dataset.task}: its target {dataset.target!r} is a number, not a class."
        )
    counts = {str(name): int(count) for name, count in dataset.train[dataset.target].value_counts().items()}
    classes = [str(name) for name in rng.permutation(sorted(counts))]
    thinned = classes[: int(rng.integers(1, max(2, len(classes) // 2 + 1)))]
    largest = max(counts[name] for name in counts if name not in thinned) if len(thinned) < len(counts) else 0
    keep = np.ones(len(dataset.train), dtype=bool)
    target = dataset.train[dataset.target].to_numpy()
    for name in thinned:
        ratio = float(np.exp(rng.uniform(np.log(1.2), np.log(60))))
        wanted = min(counts[name], max(min(FEWEST, counts[name]), round(largest / ratio)))
        places = np.flatnonzero(target == name)
        keep[rng.permutation(places)[wanted:]] = False
    made = resized(replace(dataset, train=dataset.train[keep], planted={"kinds": ["class_ratio"], "thinned": thinned}))
    return renumbered(made, rng)
