"""Probabilistic F1."""

from __future__ import annotations

from typing import Literal

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux_tables import Array, Options, Rows, define, numbers

from mleredux_graders.classification.scores import true_indicators


class ProbabilisticF1Options(Options):
    """Options of the metric."""

    missing: Literal["refuse", "zero-score"] = "refuse"
    """`zero-score`: a missing prediction makes the score 0."""
    refuse_all_negative: bool = False
    """Whether predictions that are all below 0 are rejected instead of being clipped to 0."""


def probabilistic_f1(y_true: Array, y_prob: Array) -> float:
    """Return F1 with probabilities instead of counts (Yacouby & Axman 2020), each clipped to 0..1.

    Args:
        y_true: 0 and 1, shape (rows,).
        y_prob: Shape (rows,).

    Returns:
        0 to 1.
    """
    y_prob = np.clip(y_prob, 0, 1)
    hits, false = float(y_prob @ y_true), float(y_prob @ (1 - y_true))
    if not hits > 0:  # NaN too
        return 0.0
    precision, recall = hits / (hits + false), hits / float(y_true.sum())
    return 2 * precision * recall / (precision + recall) if precision > 0 else 0.0


def _read(rows: Rows, options: ProbabilisticF1Options) -> Array:
    (target,) = rows.targets
    y_prob = numbers(rows.predicted(target), target, finite=False)
    if options.missing == "refuse":
        numbers(y_prob, target)
    if options.refuse_all_negative and len(y_prob) and (y_prob < 0).all():
        raise InvalidSubmission(f"Column {target!r} must have a probability above 0; all of its values are negative.")
    return y_prob


def _score(rows: Rows, y_prob: Array, options: ProbabilisticF1Options) -> float:
    return probabilistic_f1(true_indicators(rows)[:, 0], y_prob)


GRADER = define(
    "probabilistic-f1", "Probabilistic F1", "maximize", _read, _score, options=ProbabilisticF1Options, perfect=1.0
)
