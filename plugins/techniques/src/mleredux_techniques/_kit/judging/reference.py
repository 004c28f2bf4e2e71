"""The reference models: one from each family with different requirements on the data.

A linear model needs monotone features and few categories; trees take any scale and any monotone transform; neighbors
need features of comparable scale; a small neural network needs scaled inputs. Each predicts class probabilities, or
standardized numbers.
"""

from __future__ import annotations

import itertools
import math
from typing import Literal

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
    return solve(x, y, others, share * len(x), classes, hidden=HIDDEN if model == "network" else 0, seed=seed)


def solve(
    x: Array,
    y: Array,
    others: Array,
    weights: Array,
    classes: bool,
    *,
    hidden: int = 0,
    seed: int = 0,
    penalty: float = 1,
) -> Array:
    """Fit a logistic regression or a network by L-BFGS, and predict.

    These are the `LogisticRegression`, `MLPClassifier` and `MLPRegressor` of scikit-learn, whose checks take most of
    the time on small tables.

    Args:
        y: As in `predict`.
        weights: Row weights that add up to the number of rows.
        classes: Whether `y` are one-hot classes.
        hidden: Number of hidden units with tanh activation; 0 for a linear model.
        seed: Seed of the network's initial coefficients.
        penalty: Weight of the squared coefficients.

    Returns:
        Probabilities or numbers, of shape (other rows, outputs); the weighted mean if the solver fails.
    """
    from scipy.optimize import fmin_l_bfgs_b

    known, share = y.any(axis=0) | (not classes), weights[:, None] / len(x)
    binary = classes and known.sum() == 2
    true, units = y[:, known][:, int(binary) :], [x.shape[1], *([hidden] if hidden else [])]
    shapes = [shape for a, b in itertools.pairwise([*units, true.shape[1]]) for shape in ((a, b), (b,))]
    sizes = [math.prod(shape) for shape in shapes]
    decay = np.repeat([penalty / len(x) * (len(shape) > 1) for shape in shapes], sizes)

    def layers(values: Array, inputs: Array) -> tuple[Array, Array, Array, Array]:
        parts = np.split(values, np.cumsum(sizes)[:-1])
        *first, matrix, offset = (part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
        inner = np.tanh(inputs @ first[0] + first[1]) if hidden else inputs
        last = inner @ matrix + offset
        level = np.logaddexp(0.0, last) if binary else np.logaddexp.reduce(last, axis=1, keepdims=True)
        return matrix, inner, last, level

    def loss(values: Array) -> tuple[float, Array]:
        matrix, inner, last, level = layers(values, x)
        lost = (level if binary else level * true) - last * true if classes else (last - true) ** 2 / 2
        error = share * ((np.exp(last - level) if classes else last) - true)
        back = error @ matrix.T * (1 - inner**2)
        slopes = [*([x.T @ back, back.sum(axis=0)] if hidden else []), inner.T @ error, error.sum(axis=0)]
        change = np.concatenate([part.ravel() for part in slopes]) + decay * values
        return float((share * lost).sum() + (decay * values) @ values / 2), change

    rng, start = np.random.RandomState(seed), np.zeros(sum(sizes))
    if hidden:
        start = np.concatenate([rng.uniform(-1, 1, size) for size in sizes])
        start *= np.repeat([(6 / sum(shape)) ** 0.5 for shape in shapes[::2] for _ in range(2)], sizes)
    with np.errstate(all="ignore"):
        values = fmin_l_bfgs_b(loss, start, maxiter=ITERATIONS, pgtol=1e-4, factr=1e7 if hidden else 64)[0]
        if not np.isfinite(values).all():
            return np.tile((share * y).sum(axis=0), (len(others), 1))
        _matrix, _inner, last, level = layers(values, others)
        shares, predicted = (
            np.nan_to_num(np.exp(last - level) if classes else last),
            np.zeros((len(others), y.shape[1])),
        )
        predicted[:, known] = np.hstack([1 - shares, shares]) if binary else shares
        return predicted


def _trees(x: Array, y: Array, others: Array, classes: bool, seed: int, weights: Array | None) -> Array:
    """Fit bagged trees: a random forest without its startup cost, which dominates on small tables.

    Trees of few one-hot classes split where those of classes do, since their squared error is the Gini impurity, and
    need no checks of classes.
    """
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    rng = np.random.default_rng(seed)
    x, others = np.ascontiguousarray(x, np.float32), np.ascontiguousarray(others, np.float32)
    many, features = y.shape[1] > MANY_CLASSES, "sqrt" if classes else 1 / 3
    trees, kind = (TREES_OF_MANY_CLASSES, DecisionTreeClassifier) if many else (TREES, DecisionTreeRegressor)
    true = y.argmax(axis=1) if many else y
    total = np.zeros((len(others), y.shape[1]))
    for _ in range(trees):
        drawn = np.bincount(rng.integers(0, len(x), min(len(x), TREE_ROWS)), minlength=len(x)).astype(float)
        share = drawn if weights is None else drawn * weights
        rows = np.flatnonzero(share > 0)
        tree = kind(max_features=features, min_samples_leaf=LEAF_ROWS, random_state=int(rng.integers(2**31)))
        tree.fit(x[rows], true[rows], sample_weight=share[rows], check_input=False)
        if many:
            total[:, tree.classes_] += tree.predict_proba(others, check_input=False)
        else:
            total += tree.predict(others, check_input=False).reshape(total.shape)
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
