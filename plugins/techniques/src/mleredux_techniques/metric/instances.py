"""Predictions that are off in a known way: (not) sure enough, weighted by class, inverted, or on a wrong scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_techniques._kit.columns import ORDER_METRICS
from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.instances import clean, merged, skewed
from mleredux_techniques._kit.predictions import KEY


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Draw a table of its own and one or more distortions of predictions; a numeric target may get a long tail."""
    made = clean(dataset, "metric", rng)
    if dataset.problem == "regression":
        shown = {"factor": float(np.exp(rng.choice([-1, 1]) * rng.uniform(0.35, 0.6)))}
        shown["offset"] = float(rng.choice([-1, 1]) * rng.uniform(0.5, 0.9))
        drawn = _some(shown, rng)
        tail = bool(rng.random() < 0.5)
        made = skewed(made, rng) if tail else made
        return merged(made, [*drawn, *["skewed_target"][:tail]], **{KEY: drawn})
    count = len(made.classes)
    weights = np.exp(rng.permutation(np.linspace(-1, 1, count)) * rng.uniform(1.4, 2.2))
    power = float(np.exp(rng.choice([-1, 1]) * rng.uniform(0.9, 1.5)))
    options: dict[str, Any] = {"power": power, "weights": weights.round(4).tolist()}
    drawn = _some(options, rng)
    if count == 2 and (dataset.metric in ORDER_METRICS or rng.random() < 0.3):
        drawn["inverted"] = True
    names = {"power": "sharpened" if power > 1 else "flattened", "weights": "weighted"}
    return merged(made, [names.get(name, name) for name in drawn], **{KEY: drawn})


def _some(options: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return some of the options, at least one."""
    kept = [name for name in options if rng.random() < 0.5] or [str(rng.choice([*options]))]
    return {name: options[name] for name in kept}
