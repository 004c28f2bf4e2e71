"""Classes of known shares. Claims are the counts, in the training table or in all rows, and the strategy."""

from __future__ import annotations

from typing import Any

import numpy as np
from mleredux_techniques.imbalance.document import SEVERITIES
from mleredux_techniques.kit import Dataset

from known_tables import ROWS, Known, Rng, base


def document(claims: dict[str, Any], truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    counts = claims.get("counts", truth["counts"])
    ratio = max(counts.values()) / min(counts.values())
    return {
        "target": truth["target"],
        "class_counts": counts,
        "majority_class": max(counts, key=counts.__getitem__),
        "minority_class": min(counts, key=counts.__getitem__),
        "imbalance_ratio": ratio,
        "severity": next(word for bound, word in SEVERITIES if ratio < bound),
        "strategies": [claims.get("strategy", {"name": "none"})],
    }


def shares_of_training(rng: Rng) -> Known:
    """The test has other shares of classes; those of the training table count."""
    rows = base(rng)
    test = rng.random(ROWS) < np.where(rows["y"] == 1, 0.55, 0.15)
    whole = {str(name): int(count) for name, count in rows["y"].value_counts().items()}
    return Known(rows, np.asarray(test), {}, {"counts": whole})


KINDS = {kind.__name__: kind for kind in (shares_of_training,)}
