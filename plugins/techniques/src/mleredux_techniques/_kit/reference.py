"""The two reference models: a linear one in closed form, and a small forest. Both predict several columns at once.

Classes are predicted as one-hot columns by least squares, so the loss is the Brier score; numbers are
standardized, so the loss is the mean squared error. Either is divided by the loss of the training mean: 1 means that
nothing was learned.
A ridge in closed form needs no solver and no iterations, and does not depend on a library's version.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, Any]
Model = Literal["linear", "tree"]
MODELS: tuple[Model, ...] = ("linear", "tree")

PENALTY = 0.01
"""Penalty of the ridge, per row: coefficients of columns whose variance is far below it shrink to zero."""
TREES = 10
MANY_CLASSES = 30
TREES_OF_MANY_CLASSES = 4
"""Number of trees above `MANY_CLASSES`, where each tree is slow."""
LEAF_ROWS = 4
WORST_LOSS = 3.0
"""Losses are clipped here, so that one held-out row far outside the training range does not outweigh all others."""


def predict(
    model: Model, x: Array, y: Array, others: Array, *, classes: bool, seed: int, weights: Array | None = None
) -> Array:
    """Fit one of the reference models and predict.

    Args:
        x: Shape (rows, features), finite.
        y: Shape (rows, outputs).
        others: Rows to predict, of shape (other rows, features).
        classes: Whether `y` are one-hot classes.
        weights: Positive row weights; None: equal weights.

    Returns:
        Shape (other rows, outputs).
    """
    if model == "linear":
        return _ridge(x, y, others, weights)
    return _forest(x, y, others, classes, seed, weights)


def _forest(x: Array, y: Array, others: Array, classes: bool, seed: int, weights: Array | None) -> Array:
    """Fit bagged trees: a random forest without its startup cost, which dominates on small tables."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    rng = np.random.default_rng(seed)
    x, others = np.ascontiguousarray(x, np.float32), np.ascontiguousarray(others, np.float32)
    trees = TREES if y.shape[1] <= MANY_CLASSES else TREES_OF_MANY_CLASSES
    codes = y.argmax(axis=1) if classes else y[:, 0]
    total = np.zeros((len(others), y.shape[1]))
    for _ in range(trees):
        drawn = np.bincount(rng.integers(0, len(x), len(x)), minlength=len(x)).astype(float)
        share = drawn if weights is None else drawn * weights
        rows = np.flatnonzero(share > 0)
        options: dict[str, Any] = {"min_samples_leaf": LEAF_ROWS, "random_state": int(rng.integers(2**31))}
        if classes:
            tree = DecisionTreeClassifier(max_features="sqrt", **options)
            tree.fit(x[rows], codes[rows], sample_weight=share[rows], check_input=False)
            total[:, tree.classes_] += tree.predict_proba(others, check_input=False)
        else:
            tree = DecisionTreeRegressor(max_features=1 / 3, **options)
            tree.fit(x[rows], codes[rows], sample_weight=share[rows], check_input=False)
            total[:, 0] += tree.predict(others, check_input=False)
    return total / trees


def loss(y: Array, predicted: Array, mean: Array) -> float:
    """Return the squared error relative to that of the training mean, averaged over the outputs, at most `WORST_LOSS`.

    Args:
        y: True values of the held-out rows, of shape (rows, outputs).
        mean: Mean of the training rows, of shape (outputs,).
    """
    return min(WORST_LOSS, float(((y - predicted) ** 2).mean() / max(((y - mean) ** 2).mean(), 1e-12)))


def _ridge(x: Array, y: Array, others: Array, weights: Array | None) -> Array:
    """Minimize the weighted mean squared error + `PENALTY` · |coefficients|²; the intercept is not penalized."""
    share = np.full(len(x), 1 / len(x)) if weights is None else weights / weights.sum()
    middle, level = share @ x, share @ y
    centred = (x - middle) * np.sqrt(share)[:, None]
    target = (y - level) * np.sqrt(share)[:, None]
    wide = x.shape[1] > len(x)  # the same solution in dual form, if there are fewer rows than columns
    gram = centred @ centred.T if wide else centred.T @ centred
    gram[np.diag_indices_from(gram)] += PENALTY
    solved = np.linalg.solve(gram, target if wide else centred.T @ target)
    coefficients = centred.T @ solved if wide else solved
    return np.asarray((others - middle) @ coefficients + level)
