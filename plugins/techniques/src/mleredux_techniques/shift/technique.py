"""Harmful drift, harmless drift, a changed target, and a relation that changes over time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Array, Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques._kit.planting import instances
from mleredux_techniques.shift.grading import KEY

NOISE = 0.8
"""Noise shared by all planted columns, so that together they do not reveal the target."""


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Draw a separate table; each kind of change may be absent, except broken columns in the test set. The numbers of
    harmful and harmless drifting columns are drawn too.
    """
    data, kinds = instances.clean(dataset, "shift", rng, numbers=4, test_share=0.5), ["broken", "harmless"]
    data = instances.with_level(data, rng, NOISE)
    changes = bool(rng.random() < 0.5)
    if not changes or rng.random() < 0.6:
        data = _with_another_target(data, rng)
        kinds.append("target")
    rows, cut = len(data.train) + len(data.test), len(data.train)
    test = np.arange(rows) >= cut
    moment = np.concatenate([rng.permutation(cut), cut + rng.permutation(rows - cut)])
    turn = float(rng.uniform(0.3, 0.7))
    drifting = ["broken"] * int(rng.integers(1, 4)) + ["harmless"] * int(rng.integers(4, 8))
    wanted = [*drifting, "moment", "turning", "turning"]
    columns: dict[str, Array] = {}
    facts: dict[str, Any] = {"broken": [], "changes": None, "recent": 1.0}
    for name, kind in zip(instances.fresh_names(data, rng, len(wanted)), wanted, strict=True):
        values: Array = rng.standard_normal(rows)
        if kind != "harmless":
            values = instances.levels(data, rng, noise=float(rng.uniform(0.3, 0.5)))
        if kind == "broken":
            values = np.where(test & (rng.random() < 0.6), -values, values)
            facts["broken"].append(name)
        if kind in ("broken", "harmless"):
            values = values + test * float(rng.choice([-1, 1]) * rng.uniform(2.0, 4.0))
        elif kind == "moment":
            values = moment / rows
            facts["changes"] = name if changes else None
        elif kind == "turning" and changes:
            values = np.where(moment < turn * cut, -values, values)
        columns[name] = np.round(values * 10.0 ** float(rng.uniform(-1, 3)), 4)
    if changes:
        kinds, facts["recent"] = [*kinds, "changing"], round(1 - turn, 3)
    return instances.merged(instances.with_values(data, columns, rng), sorted(kinds), **{KEY: facts})


def _with_another_target(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Drop test rows, more from some classes (or from small or large numbers) than from others."""
    _names, codes = np.unique(dataset.test[dataset.target].to_numpy(), return_inverse=True)
    order = rng.permutation(codes.max() + 1) if dataset.problem != "regression" else np.arange(codes.max() + 1)
    place = order[codes] / max(codes.max(), 1) * float(rng.choice([-1, 1]))
    kept = rng.random(len(codes)) < np.exp(float(rng.uniform(1.2, 2.0)) * (place - place.max()))
    return instances.resized(replace(dataset, test=dataset.test[kept]))


technique = declared(__package__, plant)
