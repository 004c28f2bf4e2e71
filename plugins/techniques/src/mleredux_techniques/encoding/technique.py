"""Categories that are predictive of the target: nominal codes in texts and numbers, ordinal scales, and others.

Codes that look alike, texts (`K217`) or integers, are nominal or ordinal with equal probability: only the target shows
which.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Array, Dataset
from mleredux_techniques._kit.declaration.package import declared
from mleredux_techniques._kit.planting.instances import fresh_names, levels, merged, with_values

SCALES = (
    ("very low", "low", "medium", "high", "very high"),
    ("bad", "poor", "fair", "average", "good", "very good", "excellent"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("beginner", "intermediate", "advanced", "expert"),
)
KINDS = ("ordinal", "binary")
TYPES = {"many": "nominal", "codes": "nominal", "graded": "ordinal", "steps": "numeric"}
LETTERS = list("ABCDEFGHKLMNPRST")


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Add two nominal columns, one of them with many values, codes with or without an order, and maybe another kind."""
    alike = (("nominal", "graded"), ("codes", "steps"))
    kinds = ["nominal", "many", *(str(rng.choice(pair)) for pair in alike)]
    kinds += [str(kind) for kind in rng.permutation(KINDS)[: int(rng.integers(0, 2))]]
    columns: dict[str, Array] = {}
    types: list[dict[str, Any]] = []
    for name, kind in zip(fresh_names(dataset, rng, len(kinds)), kinds, strict=True):
        level = levels(dataset, rng, noise=float(rng.uniform(0.4, 0.6)))
        words = _words(kind, rng)
        edges = np.quantile(level[: len(dataset.train)], np.linspace(0, 1, len(words) + 1)[1:-1])
        columns[name] = words[np.searchsorted(edges, level)]
        types.append({"column": name, "type": TYPES.get(kind, kind)})
    return merged(with_values(dataset, columns, rng), sorted(set(kinds)), categories=types)


def _words(kind: str, rng: np.random.Generator) -> Array:
    """Return the names of the bins, lowest first; nominal ones are in random order."""
    if kind == "ordinal":
        return np.array(SCALES[int(rng.integers(len(SCALES)))], dtype=object)
    if kind == "binary":
        return rng.permutation(np.array([["no", "yes"], ["old", "new"], ["in", "out"]][int(rng.integers(3))], object))
    pieces = int(rng.integers(*{"many": (40, 70), "codes": (9, 15), "steps": (9, 15)}.get(kind, (7, 13))))
    codes = rng.permutation(900)[:pieces] + 100
    if kind in ("codes", "steps"):
        numbers = rng.permutation(50)[:pieces] + 1
        return np.asarray(np.sort(numbers) if kind == "steps" else numbers, float)
    if kind == "graded":
        codes = np.sort(codes)
    letter = str(rng.choice(LETTERS))
    return np.array([f"{letter}{code}" for code in codes], dtype=object)


technique = declared(__package__, plant)
