"""Classes of other shares, with a metric that asks for one strategy. Claims are the strategy, or also wrong counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from known_tables import Known, Rng

from held_tables import held_out, mixed

NONE, WEIGHTS = {"name": "none"}, {"name": "class_weight", "class_weight": "balanced"}
UNDER, SMOTE = {"name": "RandomUnderSampler"}, {"name": "SMOTE"}


def _tuned(scoring: str) -> dict[str, Any]:
    return {"name": "TunedThresholdClassifierCV", "scoring": scoring}


def _rare(rng: Rng, size: int, share: float, metric: str, right: Any, wrong: Any, *, noise: float = 1.0) -> Known:
    rows = mixed(rng, size, share=share, noise=noise)
    return Known(rows, held_out(rng, size), {"strategy": right}, {"strategy": wrong}, metric)


def log_loss_weights(rng: Rng) -> Known:
    return _rare(rng, 1500, 0.06, "log-loss", NONE, WEIGHTS)


def log_loss_sampling(rng: Rng) -> Known:
    return _rare(rng, 1200, 0.1, "log-loss", NONE, UNDER)


def squared_error_of_probabilities(rng: Rng) -> Known:
    return _rare(rng, 1500, 0.08, "brier", NONE, SMOTE)


def ranking(rng: Rng) -> Known:
    """Rankings lose by dropping most of the rows."""
    return _rare(rng, 1500, 0.06, "roc-auc", NONE, UNDER, noise=0.7)


def precision_of_ranking(rng: Rng) -> Known:
    return _rare(rng, 1500, 0.07, "average-precision", NONE, UNDER, noise=0.7)


def share_of_hits(rng: Rng) -> Known:
    return _rare(rng, 1200, 0.1, "accuracy", NONE, WEIGHTS, noise=1.5)


def share_of_hits_by_class(rng: Rng) -> Known:
    return _rare(rng, 1500, 0.07, "balanced-accuracy", WEIGHTS, NONE)


def harmonic_mean(rng: Rng) -> Known:
    return _rare(rng, 1800, 0.08, "f1", _tuned("f1"), NONE)


def agreement(rng: Rng) -> Known:
    return _rare(rng, 1800, 0.08, "cohen-kappa", _tuned("f1"), NONE)


def correlation_of_classes(rng: Rng) -> Known:
    return _rare(rng, 1800, 0.08, "matthews-correlation", _tuned("f1"), UNDER)


def _three(rng: Rng, metric: str, right: Any, wrong: Any) -> Known:
    rows = mixed(rng, 1600, "regression")
    rows["y"] = np.array(["usual", "odd", "void"], dtype=object)[
        np.digitize(rows["y"], np.quantile(rows["y"], [0.86, 0.95]))
    ]
    return Known(rows, held_out(rng, 1600), {"strategy": right}, {"strategy": wrong}, metric)


def three_classes_alike(rng: Rng) -> Known:
    return _three(rng, "balanced-accuracy", WEIGHTS, NONE)


def three_probabilities(rng: Rng) -> Known:
    return _three(rng, "log-loss", NONE, WEIGHTS)


def even_classes(rng: Rng) -> Known:
    """Nothing to correct: half the rows are dropped for nothing."""
    rows = mixed(rng, 900, share=0.5)
    counts = {"0": 400, "1": 230}
    return Known(rows, held_out(rng, 900), {"strategy": NONE}, {"strategy": UNDER, "counts": counts}, "accuracy")


KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(log_loss_weights, log_loss_sampling, squared_error_of_probabilities, ranking, precision_of_ranking),
        *(share_of_hits, share_of_hits_by_class, harmonic_mean, agreement, correlation_of_classes),
        *(three_classes_alike, three_probabilities, even_classes),
    )
}
