"""Fit one candidate to one target, and predict with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mleredux_agent_baseline.metrics import LOGARITHMIC_METRICS, Array
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
