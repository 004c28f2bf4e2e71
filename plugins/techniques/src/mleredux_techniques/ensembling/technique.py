"""Models of different value: honest ones, copies, some fitted to the rows that they predict, and noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques._kit.judging.predictions import KEY
from mleredux_techniques._kit.judging.reference import MODELS
from mleredux_techniques._kit.planting.instances import clean, merged

NAMES = ("alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine")


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Draw a separate table, and models: the reference models, a copy, and some that should be left out."""
    data = clean(dataset, "ensembling", rng)
    kinds = ["copy", *["fitted"] * int(rng.integers(0, 3)), *["little"] * int(rng.integers(1, 4))]
    plans: list[dict[str, Any]] = [{"model": model} for model in MODELS]
    for kind in kinds:
        how: dict[str, Any] = {"model": str(rng.choice(MODELS))}
        if kind == "fitted":
            how |= {"mixed": int(rng.integers(2**31)), "fitted": float(rng.uniform(0.15, 0.45))}
        elif kind == "little":
            how |= {"mixed": int(rng.integers(2**31)), "power": 1.0}
        plans.append(how)
    names = [str(name) for name in rng.permutation(NAMES)[: len(plans)]]
    shuffled = {names[place]: plans[place] for place in rng.permutation(len(plans))}
    return merged(data, sorted(set(kinds)), **{KEY: shuffled})


technique = declared(__package__, plant)
