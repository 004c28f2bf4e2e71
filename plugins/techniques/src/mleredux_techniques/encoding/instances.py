"""Categories derived from numbers: ordinal scales, codes, many codes, and binary values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mleredux_techniques._kit.dataset import Dataset, Kind
from mleredux_techniques._kit.instances import Array, lively, need

SCALE = ("very low", "low", "medium", "high", "very high")
MOST = 0.15
KINDS = ("ordinal", "nominal", "many", "binary")


def plant(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Convert three to five numeric features to categories; the first ones are of three different kinds."""
    usable = lively(dataset)
    need(dataset, "encoding", usable, 3, "numeric features with eight or more values")
    columns = [str(name) for name in rng.permutation(usable)[: int(rng.integers(3, min(5, len(usable)) + 1))]]
    kinds = [str(kind) for kind in rng.permutation(KINDS)] + [str(rng.choice(KINDS))]
    train, test = dataset.train.copy(), dataset.test.copy()
    types: list[dict[str, Any]] = []
    changed: dict[str, Kind] = dict(dataset.kinds)
    for name, kind in zip(columns, kinds, strict=False):
        ours, theirs = dataset.train[name].to_numpy(float), dataset.test[name].to_numpy(float)
        edges = _edges(ours, kind, rng)
        words = _words(len(edges) + 1, kind, rng)
        train[name], test[name] = _named(ours, edges, words), _named(theirs, edges, words)
        changed[name] = "text"
        types.append({"column": name, "type": {"many": "nominal"}.get(kind, kind)})
    planted = {"kinds": sorted(set(kinds[: len(columns)])), "categories": types}
    return replace(dataset, train=train, test=test, kinds=changed, planted=planted)


def _edges(values: Array, kind: str, rng: np.random.Generator) -> Array:
    """Return the cut points of the numbers; each bin contains some training rows."""
    known = values[~np.isnan(values)]
    distinct, counts = np.unique(known, return_counts=True)
    if counts.max() > MOST * len(known):  # a value in many rows would span several bins
        known = distinct
    pieces = {"ordinal": 5, "nominal": int(rng.integers(5, 9)), "binary": 2}.get(
        kind, max(10, min(200, len(known) // 8))
    )
    return np.unique(np.quantile(known, np.linspace(0, 1, pieces + 1)[1:-1]))


def _words(pieces: int, kind: str, rng: np.random.Generator) -> Array:
    """Return the names of the bins, lowest first; those of codes have no order."""
    if kind == "ordinal":
        return np.array(SCALE[-pieces:] if pieces < 5 else SCALE, dtype=object)
    if kind == "binary":
        return np.array(["no", "yes"], dtype=object)
    letter = str(rng.choice(list("ABCDEFGHKLMNPRST")))
    codes = rng.permutation(900)[:pieces] + 100
    return np.array([f"{letter}{code}" for code in codes], dtype=object)


def _named(values: Array, edges: Array, words: Array) -> Array:
    named = words[np.minimum(np.searchsorted(edges, np.nan_to_num(values), side="right"), len(words) - 1)]
    return np.where(np.isnan(values), np.nan, named).astype(object)
