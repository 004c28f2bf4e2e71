"""Log loss."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array, Rows, define

from mleredux_graders.classification.scores import ProbabilityOptions, read_probabilities, true_indicators

EPS = float(np.finfo(np.float64).eps)


class LogLossOptions(ProbabilityOptions):
    """Options of log loss."""

    eps: float = EPS
    """Probabilities are clipped to `[eps, 1 - eps]`; they are not rescaled."""


def log_loss(y_true: Array, y_pred: Array, *, eps: float = EPS, sample_weight: Array | None = None) -> float:
    """Return the mean negative logarithm of the probability assigned to the true class.

    Args:
        y_true: 0 and 1 per class, shape (rows, classes); or (rows, 1) for binary classification.
        y_pred: Probabilities of the same shape.
        eps: Probabilities are clipped to `[eps, 1 - eps]`.
        sample_weight: Shape (rows,).

    Returns:
        0 or more (only nearly 0, because of the clipping).
    """
    if y_true.shape[1] == 1:
        y_true = np.hstack([1 - y_true, y_true])
        y_pred = np.hstack([1 - y_pred, y_pred])
    losses = -(y_true * np.log(np.clip(y_pred, eps, 1 - eps))).sum(axis=1)
    return float(np.average(losses, weights=sample_weight))


def _score(rows: Rows, y_pred: Array, options: LogLossOptions) -> float:
    return log_loss(true_indicators(rows), y_pred, eps=options.eps, sample_weight=rows.weight)


GRADER = define("log-loss", "Log loss", "minimize", read_probabilities, _score, options=LogLossOptions, perfect=EPS)
