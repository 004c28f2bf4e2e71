"""Brier score."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array, Rows, define

from mleredux_graders.classification.scores import ProbabilityOptions, read_probabilities, true_indicators


def brier(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> float:
    """Return the mean squared distance of probabilities from the truth (Brier 1950).

    Args:
        y_true: 0 and 1, shape (rows, classes), or (rows, 1) for binary classification.
        y_pred: Probabilities of the same shape.

    Returns:
        0 to 1 for one column, 0 to 2 for several (summed over classes).
    """
    return float(np.average(((y_true - y_pred) ** 2).sum(axis=1), weights=sample_weight))


def _score(rows: Rows, y_pred: Array, options: ProbabilityOptions) -> float:
    return brier(true_indicators(rows), y_pred, sample_weight=rows.weight)


GRADER = define("brier", "Brier score", "minimize", read_probabilities, _score, options=ProbabilityOptions, perfect=0.0)
