"""Blending: greedy selection with replacement.

Caruana et al., "Ensemble selection from libraries of models", ICML 2004.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from mleredux_agent_baseline.fit import Choice
from mleredux_agent_baseline.metrics import Array, Metric, metric_for

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
        name = min(pool, key=lambda one: tried[one])
        if not tried[name] < best - 1e-12:
            break
        chosen.append(name)
        total, best = total + predictions[name], tried[name]
    counts = Counter(chosen)
    return [Choice(name, count / len(chosen)) for name, count in counts.most_common()]


def mix(predictions: dict[str, Array], choices: list[Choice]) -> Array:
    """Return the weighted mean of the chosen candidates' predictions."""
    return np.asarray(sum(choice.weight * predictions[choice.candidate] for choice in choices))
