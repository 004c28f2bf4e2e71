"""Models of different worth: honest ones, copies, one that was fitted to the rows that it predicts, and noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.instances import clean, merged
from mleredux_techniques._kit.predictions import KEY
from mleredux_techniques._kit.reference import MODELS

NAMES = ("alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine")


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Draw a table of its own, and models: the reference models, one or two of each kind that is to be left out."""
    made = clean(dataset, "ensembling", rng)
    kinds = ["fitted", "little", "little", "copy", *(["fitted"] if rng.random() < 0.5 else [])]
    plans: list[dict[str, Any]] = [{"model": model} for model in MODELS]
    for kind in kinds:
        how: dict[str, Any] = {"model": str(rng.choice(MODELS))}
        if kind == "fitted":
            how |= {"mixed": int(rng.integers(2**31)), "fitted": float(rng.uniform(0.6, 0.8))}
        elif kind == "little":
            how |= {"mixed": int(rng.integers(2**31)), "power": 1.0}
        plans.append(how)
    names = [str(name) for name in rng.permutation(NAMES)[: len(plans)]]
    told = {names[place]: plans[place] for place in rng.permutation(len(plans))}
    return merged(made, sorted(set(kinds)), **{KEY: told})
