"""F1, precision and recall of labels."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
from mleredux_tables import Array

from mleredux_graders.classification.confusion import label_counts, ratio
from mleredux_graders.classification.labels import LabelOptions, label_grader

Average = Literal["binary", "micro", "macro", "weighted"]


class F1Options(LabelOptions):
    """Options of F1."""

    average: Average = "macro"
    """Averaging; `binary` scores the label that sorts last (1, True)."""


def fbeta(
    y_true: Array,
    y_pred: Array,
    *,
    beta: float = 1.0,
    average: Average = "macro",
    sample_weight: Array | None = None,
) -> float:
    """Return F-beta over all labels that occur in truth or prediction; 0 if a denominator is 0.

    Args:
        y_true: Labels as integers from 0, shape (rows,).
        y_pred: The same.
        beta: Weight of recall: 1 for F1, 0 for precision, infinity for recall.
        average: Over labels, or over rows (`micro`).

    Returns:
        0 to 1.
    """
    hits, true, predicted = label_counts(y_true, y_pred, sample_weight=sample_weight)
    if average == "micro":
        hits, true, predicted = hits.sum(), true.sum(), predicted.sum()
    # the harmonic form, with both sides divided by beta squared if only recall is left
    share = 1 / (1 + beta**2)
    scores = ratio(hits, share * predicted + (1 - share) * true)
    if average == "micro":
        return float(scores)
    if average == "binary":
        return float(scores[-1])
    occurs = (true > 0) | (predicted > 0)
    return float(np.average(scores[occurs], weights=true[occurs] if average == "weighted" else None))


def _averaged(options: F1Options) -> dict[str, Any]:
    return {"average": options.average}


GRADER, PRECISION, RECALL = (
    label_grader(id, title, "maximize", partial(fbeta, beta=beta), options=F1Options, perfect=1.0, chosen=_averaged)
    for id, title, beta in (("f1", "F1", 1.0), ("precision", "Precision", 0.0), ("recall", "Recall", np.inf))
)
