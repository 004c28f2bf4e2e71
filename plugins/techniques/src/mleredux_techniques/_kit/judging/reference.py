"""The reference models: one from each family with different requirements on the data.

A linear model needs monotone features and few categories; trees take any scale and any monotone transform; neighbors
need features of comparable scale; a small neural network needs scaled inputs. Each predicts class probabilities, or
standardized numbers.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from mleredux_techniques._kit.data.dataset import Array

Model = Literal["linear", "trees", "neighbors", "network"]
MODELS: tuple[Model, ...] = ("linear", "trees", "neighbors", "network")
NAMES = "a linear model, trees, nearest neighbors and a small neural network"

PENALTY = 0.01
"""Penalty of the ridge, for weights that add up to 1: columns with a far smaller variance have coefficients near 0."""
TREES = 8
MANY_CLASSES = 30
TREES_OF_MANY_CLASSES = 4
"""Number of trees for more than `MANY_CLASSES` classes, for which each tree is slow."""
TREE_ROWS = 1_000
"""Maximum number of rows of each tree."""
LEAF_ROWS = 3
NEIGHBORS = 7
HIDDEN = 16
ITERATIONS = 40
"""Maximum number of iterations of the solvers of the linear model and of the network."""
PRIOR = 0.03
"""Weight of the class shares in the probabilities of trees, since a leaf may lack a class."""


def predict(
    model: Model, x: Array, y: Array, others: Array, *, classes: bool, seed: int, weights: Array | None = None
) -> Array:
    """Fit one of the reference models and predict.

    Args:
        x: Shape (rows, features), finite.
        y: One-hot classes or standardized numbers, of shape (rows, outputs).
        others: Rows to predict, of shape (other rows, features).
        classes: Whether `y` are one-hot classes.
        weights: Positive row weights; None: equal weights.

    Returns:
        Probabilities or numbers, of shape (other rows, outputs).
    """
    share = np.full(len(x), 1 / len(x)) if weights is None else weights / weights.sum()
    level = share @ y
    if classes and np.count_nonzero(level) < 2:
        return np.tile(level, (len(others), 1))
    if model == "trees":
        predicted = _trees(x, y, others, classes, seed, weights)
        return (1 - PRIOR) * predicted + PRIOR * level if classes else predicted
    if model == "neighbors":
        return _neighbors(x, y, others, share, level)
    if model == "linear" and not classes:
        from sklearn.linear_model import Ridge

        return np.asarray(Ridge(PENALTY).fit(x, y, sample_weight=share).predict(others).reshape(len(others), -1))
    return _solved(model, x, y, others, classes, seed, share * len(x))


def _solved(model: Model, x: Array, y: Array, others: Array, classes: bool, seed: int, weights: Array) -> Array:
    """Fit a logistic regression, or a network with one hidden layer, using a few iterations of L-BFGS."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    options: dict[str, Any] = {"solver": "lbfgs", "max_iter": ITERATIONS}
    family = MLPClassifier if classes else MLPRegressor
    tool: Any = family(hidden_layer_sizes=(HIDDEN,), activation="tanh", alpha=1.0, random_state=seed, **options)
    if model == "linear":
        tool = LogisticRegression(**options)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # few iterations suffice if the features suit the model
        try:
            unequal = None if (weights == 1).all() else weights  # equal weights only take time
            tool.fit(x, y.argmax(axis=1) if classes else y[:, 0], sample_weight=unequal)
        except ValueError:  # weights out of bounds
            return np.asarray(np.tile(np.average(y, axis=0, weights=weights), (len(others), 1)))
        if not classes:
            return np.asarray(np.nan_to_num(tool.predict(others)), dtype=float)[:, None]
        shares = np.zeros((len(others), y.shape[1]))
        shares[:, tool.classes_] = np.nan_to_num(tool.predict_proba(others))
    return shares


def _trees(x: Array, y: Array, others: Array, classes: bool, seed: int, weights: Array | None) -> Array:
    """Fit bagged trees: a random forest without its startup cost, which dominates on small tables."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    rng = np.random.default_rng(seed)
    x, others = np.ascontiguousarray(x, np.float32), np.ascontiguousarray(others, np.float32)
    trees = TREES if y.shape[1] <= MANY_CLASSES else TREES_OF_MANY_CLASSES
    codes = y.argmax(axis=1) if classes else y[:, 0]
    total = np.zeros((len(others), y.shape[1]))
    for _ in range(trees):
        drawn = np.bincount(rng.integers(0, len(x), min(len(x), TREE_ROWS)), minlength=len(x)).astype(float)
        share = drawn if weights is None else drawn * weights
        rows = np.flatnonzero(share > 0)
        kind, features = (DecisionTreeClassifier, "sqrt") if classes else (DecisionTreeRegressor, 1 / 3)
        tree = kind(max_features=features, min_samples_leaf=LEAF_ROWS, random_state=int(rng.integers(2**31)))
        tree.fit(x[rows], codes[rows], sample_weight=share[rows], check_input=False)
        if classes:
            total[:, tree.classes_] += tree.predict_proba(others, check_input=False)
        else:
            total[:, 0] += tree.predict(others, check_input=False)
    return total / trees


def _neighbors(x: Array, y: Array, others: Array, share: Array, level: Array) -> Array:
    """Average the nearest rows by Euclidean distance, with the mean of all rows as one more neighbor."""
    x, others = x - x.mean(axis=0), others - x.mean(axis=0)
    count = min(NEIGHBORS, len(x))
    apart = (x**2).sum(axis=1) - 2 * (others @ x.T)
    nearest = np.argpartition(apart, count - 1, axis=1)[:, :count]
    weights = share[nearest] * len(x)
    total = (weights[:, :, None] * y[nearest]).sum(axis=1) + level
    return np.asarray(total / (weights.sum(axis=1, keepdims=True) + 1))
