"""Matthews correlation coefficient."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Array

from mleredux_graders.classification.confusion import label_counts
from mleredux_graders.classification.labels import LabelOptions, label_grader


def matthews_correlation(y_true: Array, y_pred: Array, *, sample_weight: Array | None = None) -> float:
    """Return the correlation of true and predicted labels, for any number of classes (Gorodkin 2004).

    Args:
        y_true: Labels as integers from 0, shape (rows,).
        y_pred: The same.

    Returns:
        -1 to 1; 0 if either side is constant.
    """
    hits, true, predicted = label_counts(y_true, y_pred, sample_weight=sample_weight)
    total = true.sum()
    covariance = hits.sum() * total - true @ predicted
    spread = (total**2 - true @ true) * (total**2 - predicted @ predicted)
    return float(covariance / np.sqrt(spread)) if spread > 0 else 0.0


GRADER = label_grader(
    "matthews-correlation", "Matthews correlation", "maximize", matthews_correlation, options=LabelOptions, perfect=1.0
)
