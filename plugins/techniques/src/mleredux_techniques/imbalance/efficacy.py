"""Efficacy of class weights, resampling and thresholds: held-out balanced accuracy of a linear and a tree model.

Naive: the unchanged data. Strong: the best of five strategies within the training table. Models are trained on training
rows only and evaluated on private test rows only, because the test may have a different class ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from mleredux_techniques._kit.comparison import Choice, judge
from mleredux_techniques._kit.dataset import Dataset
from mleredux_techniques._kit.memory import remembered
from mleredux_techniques._kit.plans import choosing_pool, rows_of
from mleredux_techniques._kit.preprocessing import matrices
from mleredux_techniques._kit.reference import MODELS, Model, predict
from mleredux_techniques._kit.results import Efficacy
from mleredux_techniques._kit.spec import Instance
from mleredux_techniques._kit.splits import Pool, assign_folds, pool
from mleredux_techniques.imbalance.document import (
    SMOTE,
    ClassWeight,
    ImbalanceAnalysis,
    ImbalanceStrategy,
    NoStrategy,
    RandomOverSampler,
    RandomUnderSampler,
    TunedThresholdClassifierCV,
)
from mleredux_techniques.imbalance.samplers import resample, row_weights

Array = np.ndarray[Any, Any]

MEASURE = "1 minus held-out balanced accuracy of a ridge and a forest"
NAIVE = NoStrategy(name="none")
PANEL: tuple[ImbalanceStrategy, ...] = (
    ClassWeight(name="class_weight"),
    RandomOverSampler(name="RandomOverSampler"),
    RandomUnderSampler(name="RandomUnderSampler"),
    SMOTE(name="SMOTE"),
    TunedThresholdClassifierCV(name="TunedThresholdClassifierCV"),
)
INNER_FOLDS = 3
POWERS = np.linspace(0.0, 2.0, 21)
"""Probabilities are divided by the class's share of the training rows to this power: 0: unchanged, 1: balanced."""


def measure(document: ImbalanceAnalysis, instance: Instance) -> Efficacy:
    """Execute the first recommended strategy."""
    dataset = instance.dataset
    given, best = document.strategies[0], strong(dataset)
    one = pool(dataset, apart=True)
    features = remembered(dataset, "features", lambda: _features(one))
    told = ", ".join(f"{key}={value}" for key, value in given.model_dump(exclude={"name"}).items())
    return judge(
        *(
            Choice(remembered(dataset, f"{how!r}", partial(losses, one, features, how)), what)
            for how, what in ((NAIVE, "the unchanged data"), (best, best.name), (given, f"{given.name}({told})"))
        ),
        overlap=one.overlap,
        measure=MEASURE,
        sample=one.sample,
    )


def strong(dataset: Dataset) -> ImbalanceStrategy:
    """Return the panel's best strategy within the training table."""

    def find() -> ImbalanceStrategy:
        one = choosing_pool(dataset)
        features = _features(one)
        return min(PANEL, key=lambda strategy: float(losses(one, features, strategy).mean()))

    return remembered(dataset, "strong", find)


def losses(one: Pool, features: Sequence[tuple[Array, Array]], strategy: ImbalanceStrategy) -> Array:
    """Return 1 minus balanced accuracy for each split, averaged over the models."""
    found = []
    for split, (x, others) in zip(one.splits, features, strict=True):
        y, truth = one.codes[split.train], one.codes[split.held_out]
        told = [_classes(model, x, y, others, one.names, strategy, split.seed) for model in MODELS]
        found.append(np.mean([1 - balanced_accuracy(truth, guess) for guess in told]))
    return np.array(found)


def balanced_accuracy(truth: Array, guess: Array) -> float:
    """Return the mean recall over the classes that occur."""
    return float(np.mean([(guess[truth == one] == one).mean() for one in np.unique(truth)]))


def _features(one: Pool) -> list[tuple[Array, Array]]:
    return [matrices(rows_of(one, split, {})) for split in one.splits]


def _classes(
    model: Model, x: Array, y: Array, others: Array, names: tuple[str, ...], strategy: ImbalanceStrategy, seed: int
) -> Array:
    count = len(names)
    if isinstance(strategy, TunedThresholdClassifierCV):
        return _tuned(model, x, y, others, count, strategy, seed)
    weights = None
    if isinstance(strategy, ClassWeight):
        weights = row_weights(strategy, y, names)
    elif not isinstance(strategy, NoStrategy):
        x, y = resample(strategy, x, y, seed)
    return np.asarray(_shares(model, x, y, others, count, seed, weights).argmax(axis=1))


def _shares(
    model: Model, x: Array, y: Array, others: Array, count: int, seed: int, weights: Array | None = None
) -> Array:
    return predict(model, x, np.eye(count)[y], others, classes=True, seed=seed, weights=weights)


def _tuned(
    model: Model, x: Array, y: Array, others: Array, count: int, how: TunedThresholdClassifierCV, seed: int
) -> Array:
    """Divide probabilities by a power of the class's share of the rows, the best one on inner folds."""
    folds = assign_folds(y, None, INNER_FOLDS, seed=seed)
    inner = np.zeros((len(y), count))
    for fold in range(INNER_FOLDS):
        rest = folds != fold
        inner[~rest] = _shares(model, x[rest], y[rest], x[~rest], count, seed)
    rarity = np.maximum(np.bincount(y, minlength=count), 1) / len(y)
    reached = [_reached(how.scoring, y, _favoured(inner, rarity, power)) for power in POWERS]
    best = POWERS[int(np.argmax(np.round(reached, 9)))]
    return _favoured(_shares(model, x, y, others, count, seed), rarity, best)


def _favoured(shares: Array, rarity: Array, power: float) -> Array:
    return np.asarray((np.maximum(shares, 0.0) / rarity**power).argmax(axis=1))


def _reached(scoring: str, truth: Array, guess: Array) -> float:
    if scoring == "accuracy":
        return float((truth == guess).mean())
    if scoring == "balanced_accuracy":
        return balanced_accuracy(truth, guess)
    classes = np.unique(truth)
    rarest = classes[[(truth == one).sum() for one in classes].index(min((truth == one).sum() for one in classes))]
    wanted = classes if len(classes) > 2 else [rarest]
    hits = [(((guess == one) & (truth == one)).sum(), (guess == one).sum() + (truth == one).sum()) for one in wanted]
    return float(np.mean([2 * both / max(total, 1) for both, total in hits]))
