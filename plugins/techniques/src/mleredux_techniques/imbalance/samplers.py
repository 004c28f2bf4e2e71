"""Execution of class weights and resampling: scikit-learn's weights, imbalanced-learn's samplers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Array
from mleredux_techniques.imbalance.document import SMOTE, ClassWeight, RandomSampler

Sampler = RandomSampler | SMOTE


def row_weights(strategy: ClassWeight, y: Array, names: tuple[str, ...] = ()) -> Array:
    """Return the weight of each row.

    Args:
        y: Class codes.
        names: The class of each code, for weights given by class; other classes get weight 1.
    """
    from sklearn.utils.class_weight import compute_sample_weight

    weights: Any = strategy.class_weight
    if weights != "balanced":
        weights = {code: weights.get(name, 1.0) for code, name in enumerate(names)}
    rows = compute_sample_weight(weights, y)
    # Single classes may have weight 0, but not all.
    return np.maximum(rows, 1e-6) if rows.sum() > 0 else np.ones(len(y))


def resample(strategy: Sampler, x: Array, y: Array, seed: int) -> tuple[Array, Array]:
    """Return the resampled rows; unchanged if imbalanced-learn refuses because the ratio is already reached.

    SMOTE uses fewer neighbors if a class has fewer rows, and repeats the row of a class that has only one.
    """
    from imblearn import over_sampling, under_sampling

    options: dict[str, Any] = {"sampling_strategy": strategy.sampling_strategy, "random_state": seed}
    rarest = int(np.unique(y, return_counts=True)[1].min())
    name: str = strategy.name if rarest > 1 or isinstance(strategy, RandomSampler) else "RandomOverSampler"
    if name == "SMOTE" and isinstance(strategy, SMOTE):
        options["k_neighbors"] = min(strategy.k_neighbors, rarest - 1)
    home = under_sampling if name == "RandomUnderSampler" else over_sampling
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            more, classes = getattr(home, name)(**options).fit_resample(x, y)
    except ValueError:
        return x, y
    return np.asarray(more), np.asarray(classes)
