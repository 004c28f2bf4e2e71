"""Predictions with a known distortion; a different step repairs each kind.

Probabilities are nearly flat (isotonic finds their order, which a penalized logistic fit can't scale up), rotated so
that only all columns together predict a class (which a logistic fit exploits), underconfident, overconfident, or
weighted. Numbers are integers with a fraction added (repaired by rounding), close to a long-tailed truth but on another
scale (repaired by a factor; bins lose the tail), or on another scale and shifted (repaired by bins). Only measuring
shows which kind was drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques._kit.judging.predictions import CLASSES, KEY
from mleredux_techniques._kit.planting.instances import clean, merged, skewed, whole

NUMBERS = ("whole", "scaled", "moved")
LEVELS = 60


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Draw a separate table, and the kind and size of a distortion of its predictions."""
    data = clean(dataset, "metric", rng)
    if dataset.problem == "regression":
        return _of_numbers(data, str(rng.choice(NUMBERS)), rng)
    count = len(data.classes)
    weights = np.exp(rng.permutation(np.linspace(-1, 1, count)) * rng.uniform(1.4, 2.2))
    power = float(np.exp(rng.choice([-1, 1]) * rng.uniform(0.9, 1.5)))
    options: dict[str, Any] = {"power": power, "weights": weights.round(4).tolist()}
    kind = str(rng.choice(CLASSES))
    drawn = _some(options, rng)
    if kind != "strength":
        drawn["power"] = float(rng.uniform(0.01, 0.02) if kind == "flat" else rng.uniform(0.2, 0.35))
        drawn |= {"turned": True} if kind == "turned" else {}
    names = {"power": "sharpened" if drawn.get("power", 1.0) > 1 else "flattened", "weights": "weighted"}
    return merged(data, [names.get(name, name) for name in drawn], **{KEY: drawn})


def _of_numbers(data: Dataset, kind: str, rng: np.random.Generator) -> Dataset:
    factor = float(np.exp(rng.choice([-1, 1]) * rng.uniform(0.35, 0.6)))
    if kind == "whole":
        return merged(whole(data, LEVELS), [kind], **{KEY: {"near": int(rng.integers(2**31))}})
    if kind == "scaled":
        return merged(skewed(data, rng), [kind], **{KEY: {"fitted": 0.97, "factor": factor}})
    drawn = _some({"factor": factor, "offset": float(rng.choice([-1, 1]) * rng.uniform(0.5, 0.9))}, rng)
    tail = bool(rng.random() < 0.5)
    data = skewed(data, rng) if tail else data
    return merged(data, [*drawn, *["skewed_target"][:tail]], **{KEY: drawn})


def _some(options: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return at least one of the options, at random."""
    kept = [name for name in options if rng.random() < 0.5] or [str(rng.choice([*options]))]
    return {name: options[name] for name in kept}


technique = declared(__package__, plant)
