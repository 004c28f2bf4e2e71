"""Changed class ratios: rows of some classes are removed from both tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from mleredux.plugin.task import Task

from mleredux_techniques._kit.data.columns import AREAS
from mleredux_techniques._kit.data.dataset import Dataset, need_classes
from mleredux_techniques._kit.declaration.package import declared, of_numbers
from mleredux_techniques._kit.planting.instances import fresh_names, levels, merged, resized, with_values

FEWEST = 40
"""Minimum number of training rows of a class."""
FEWEST_TEST = 15
WEAK = 3
"""Number of new, weakly predictive columns: the weaker they are, the more the class ratio matters."""


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Thin out one or more classes in both tables, to a ratio from 10 to 25 (with groups 3 to 5) if possible, and add
    weakly predictive columns.
    """
    need_classes(dataset, "imbalance")
    classes = [str(name) for name in rng.permutation(sorted(set(dataset.train[dataset.target])))]
    thinned = classes[: int(rng.integers(1, max(2, len(classes) // 2 + 1)))]
    ratio = float(rng.uniform(3, 5) if dataset.group else np.exp(rng.uniform(np.log(10), np.log(25))))
    frames = []
    for frame, fewest in ((dataset.train, FEWEST), (dataset.test, FEWEST_TEST)):
        target = frame[dataset.target].to_numpy()
        largest = max(int((target == name).sum()) for name in classes[len(thinned) :])
        keep = np.ones(len(frame), dtype=bool)
        for name in thinned:
            places = rng.permutation(np.flatnonzero(target == name))
            if dataset.group:  # complete groups
                groups = np.unique(dataset.group.of(frame).to_numpy(dtype=str), return_inverse=True)[1]
                places = places[np.argsort(rng.permutation(groups.max() + 1)[groups[places]], kind="stable")]
            keep[places[max(fewest, round(largest / ratio)) :]] = False
        frames.append(frame[keep])
    data = resized(replace(dataset, train=frames[0], test=frames[1]))
    columns = {
        name: np.round(levels(data, rng, noise=float(rng.uniform(1.5, 2.0))), 4)
        for name in fresh_names(data, rng, WEAK)
    }
    return merged(with_values(data, columns, rng), ["class_ratio"], thinned=thinned)


def _reason(base: Task, planted: bool) -> str | None:
    if planted and base.metric.id in AREAS:
        return f"under {base.metric.id}, no response to planted class ratios is better than another"
    return of_numbers(base, planted)


technique = declared(__package__, plant, reason=_reason)
