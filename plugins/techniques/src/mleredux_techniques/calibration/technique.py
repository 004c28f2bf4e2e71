"""Models that are overconfident, underconfident, biased for some classes, or calibrated; some are weak.

In two of five instances each, the distorted probabilities are also nearly flat or rotated (see `metric.technique`), so
that only measuring shows whether isotonic or logistic calibration repairs them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Dataset, need_classes
from mleredux_techniques._kit.declaration.package import declared, of_numbers
from mleredux_techniques._kit.judging.predictions import CLASSES, KEY
from mleredux_techniques._kit.judging.reference import MODELS
from mleredux_techniques._kit.planting.instances import clean, merged

NAMES = ("alder", "birch", "cedar", "elm", "fir", "hazel")

POWERS = {"little": (5.0, 8.0), "over": (2.5, 4.0), "under": (0.3, 0.5), "weighted": (0.9, 1.1), "fine": (1.0, 1.0)}
"""Kinds of distortions, each with the range of exponents that probabilities are raised to."""


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Draw a separate table, and a distortion or none for each model; at least one is over- or underconfident.

    Raises:
        NotApplicable: The target is a number.
    """
    need_classes(dataset, "calibration")
    data = clean(dataset, "calibration", rng)
    count, kinds = len(data.classes), set()
    plans: dict[str, dict[str, Any]] = {}
    drawn = [str(rng.choice(["over", "under", "little"])), *(str(kind) for kind in rng.choice([*POWERS], 3))]
    besides = str(rng.choice(CLASSES))
    for name, model, kind in zip(rng.permutation(NAMES), rng.permutation(MODELS), rng.permutation(drawn), strict=False):
        weights = np.exp(rng.permutation(np.linspace(-1, 1, count)) * rng.uniform(1.2, 1.8))
        how: dict[str, Any] = {"model": str(model), "power": float(rng.uniform(*POWERS[str(kind)]))}
        if kind == "weighted" or (kind != "fine" and rng.random() < 0.5):
            how["weights"] = weights.round(4).tolist()
        if kind == "little":
            how["mixed"] = int(rng.integers(2**31))
        if kind != "fine" and besides == "flat":
            how["power"] = float(rng.uniform(0.01, 0.02))
        elif kind != "fine" and besides == "turned":
            how |= {"power": float(rng.uniform(0.3, 0.5)), "turned": True}
        plans[str(name)] = how
        kinds.add(str(kind))
    return merged(data, sorted(kinds), **{KEY: plans})


technique = declared(__package__, plant, reason=of_numbers)
