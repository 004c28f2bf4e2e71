"""Fit one candidate to one target, and predict with it; blend candidates by greedy selection with replacement.

Blending follows Caruana et al., "Ensemble selection from libraries of models", ICML 2004.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from mleredux_agent_baseline.metrics import LOGARITHMIC_METRICS, Array, Metric, metric_for
from mleredux_agent_baseline.models import BY_NAME, Candidate
from mleredux_agent_baseline.problem import Head


@dataclass(frozen=True)
class Choice:
    """A candidate and its weight in the blend of a head."""

    candidate: str
    weight: float


def candidates_for(head: Head, kinds: list[str]) -> list[Candidate]:
    """Return the candidates that are suitable for a head, regardless of the size of the table."""
    joint = head.y.ndim == 2
    return [
        candidate
        for candidate in BY_NAME[bool(head.classes)].values()
        if candidate.features in kinds and (candidate.joint or not joint) and len(head.classes) <= candidate.max_classes
    ]


def fit_predict(
    candidate: Candidate, head: Head, x: Any, rows: Array, others: list[Any], metric: str, seed: int, threads: int
) -> list[Array]:
    """Fit a candidate to some rows, and predict others.

    Args:
        x: Features of the rows to learn from, of shape (rows, features).
        rows: Indices of these rows in `head.y`.
        others: Matrices of the rows to predict.
        metric: The task's metric; numbers are fitted on a logarithmic scale if the metric uses one.

    Returns:
        For each matrix, probabilities of shape (rows, classes), or numbers with the shape of `head.y`.
    """
    model, y = candidate.make(seed, threads), head.y[rows]
    if head.classes:
        if len(np.unique(y)) == 1:
            return [np.eye(len(head.classes))[np.full(other.shape[0], y[0])] for other in others]
        model.fit(x, y)
        return [_all_classes(model.predict_proba(other), model.classes_, len(head.classes)) for other in others]
    logarithmic = metric in LOGARITHMIC_METRICS and head.y.min() >= 0
    y = np.log1p(y) if logarithmic else y
    middle, spread = y.mean(axis=0), y.std(axis=0) + 1e-12
    model.fit(x, (y - middle) / spread)
    predictions = []
    for other in others:
        values = np.asarray(model.predict(other)).reshape(other.shape[0], *head.y.shape[1:]) * spread + middle
        values = np.expm1(values) if logarithmic else values
        predictions.append(np.maximum(values, 0) if head.y.min() >= 0 else values)
    return predictions


def _all_classes(probabilities: Array, present: Array, count: int) -> Array:
    """Add zero columns for classes that are missing from the training rows."""
    full = np.zeros((len(probabilities), count))
    full[:, present] = probabilities
    return full


ROUNDS = 12
POOL = 8
TIE_BREAK = 0.01
"""Weight of the log loss that is added to a metric of labels, which does not reflect small improvements."""


def blend_loss(metric: Metric, y: Array, prediction: Array, *, labels: bool) -> float:
    """Return the loss that selects a blend: the metric's loss, plus a little log loss if labels are submitted."""
    loss = metric.loss(y, prediction)
    if labels:
        loss += TIE_BREAK * metric_for("log-loss", classes=True, labels=False).loss(y, prediction)
    return loss


def select(predictions: dict[str, Array], y: Array, metric: Metric, *, labels: bool = False) -> list[Choice]:
    """Return the weights of the candidates whose average performs best on held-out rows.

    Args:
        predictions: Candidate → its predictions of held-out rows.
        y: The true values of these rows.

    Returns:
        The choices by descending weight; the weights sum to 1.
    """
    alone = {name: blend_loss(metric, y, values, labels=labels) for name, values in predictions.items()}
    pool = sorted(alone, key=lambda name: (alone[name], name))[:POOL]
    chosen = [pool[0]]
    total, best = predictions[pool[0]].copy(), alone[pool[0]]
    while len(chosen) < ROUNDS:
        tried = {
            name: blend_loss(metric, y, (total + predictions[name]) / (len(chosen) + 1), labels=labels) for name in pool
        }
        name = min(pool, key=lambda name: tried[name])
        if not tried[name] < best - 1e-12:
            break
        chosen.append(name)
        total, best = total + predictions[name], tried[name]
    counts = Counter(chosen)
    return [Choice(name, count / len(chosen)) for name, count in counts.most_common()]


def mix(predictions: dict[str, Array], choices: list[Choice]) -> Array:
    """Return the weighted mean of the chosen candidates' predictions."""
    return np.asarray(sum(choice.weight * predictions[choice.candidate] for choice in choices))
