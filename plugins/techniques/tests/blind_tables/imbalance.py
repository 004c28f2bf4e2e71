"""Rare classes under other metrics. Claims are the strategy that is recommended first."""

from __future__ import annotations

from typing import Any

import numpy as np
from known_tables import Known, Rng
from known_tables.imbalance import document

from blind_tables import at_random, patients

__all__ = ["KINDS", "document"]
NONE, WEIGHTS = {"strategy": {"name": "none"}}, {"strategy": {"name": "class_weight"}}
UNDER, OVER = {"strategy": {"name": "RandomUnderSampler"}}, {"strategy": {"name": "RandomOverSampler"}}
SMOTE = {"strategy": {"name": "SMOTE"}}
TUNED_F1 = {"strategy": {"name": "TunedThresholdClassifierCV", "scoring": "f1"}}


def _classes(rng: Rng, size: int, shares: list[float], metric: str, right: Any, wrong: Any, **options: Any) -> Known:
    """Classes in order of the risk, as large as said."""
    rows, risk = patients(rng, size)
    bounds = np.quantile(risk, np.cumsum(shares)[:-1])
    classes: Any = np.arange(len(shares)) if metric == "quadratic-weighted-kappa" or len(shares) == 2 else None
    if classes is None:
        classes = np.array(["stable", "watch", "urgent", "critical"], dtype=object)[: len(shares)]
    rows["y"] = classes[np.digitize(risk, bounds)]
    return Known(rows, at_random(rng, size), right, wrong, metric, options=options)


def f1_of_the_rare(rng: Rng) -> Known:
    """F1 of the positive class: a lower threshold finds more of them."""
    return _classes(rng, 1800, [0.9, 0.1], "f1", TUNED_F1, NONE, average="binary")


def rare_log_loss(rng: Rng) -> Known:
    """Probabilities are wanted; weights spoil them."""
    return _classes(rng, 1200, [0.88, 0.12], "log-loss", NONE, WEIGHTS)


def grades_of_severity(rng: Rng) -> Known:
    """Five grades, quadratic kappa: the middle ones must be predicted."""
    return _classes(rng, 1800, [0.6, 0.2, 0.1, 0.06, 0.04], "quadratic-weighted-kappa", WEIGHTS, NONE)


def four_probabilities(rng: Rng) -> Known:
    """Log loss of four classes."""
    return _classes(rng, 1500, [0.6, 0.25, 0.1, 0.05], "log-loss", NONE, OVER)


def every_class_counts(rng: Rng) -> Known:
    """Balanced accuracy of three classes."""
    return _classes(rng, 1500, [0.75, 0.18, 0.07], "balanced-accuracy", WEIGHTS, NONE)


def only_hits_count(rng: Rng) -> Known:
    """Accuracy: weights give up many of the frequent class."""
    return _classes(rng, 1200, [0.9, 0.1], "accuracy", NONE, WEIGHTS)


def all_four_cells(rng: Rng) -> Known:
    """Matthews' correlation at a rare class."""
    return _classes(rng, 1800, [0.92, 0.08], "matthews-correlation", TUNED_F1, NONE)


def squared_errors(rng: Rng) -> Known:
    """Brier score: synthetic rows shift all probabilities."""
    return _classes(rng, 1200, [0.9, 0.1], "brier", NONE, SMOTE)


KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(f1_of_the_rare, rare_log_loss, grades_of_severity, four_probabilities, every_class_counts),
        *(only_hits_count, all_four_cells, squared_errors),
    )
}
