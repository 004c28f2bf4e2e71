"""F-beta for the pixels of masks."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Rows, define

from mleredux_graders.segmentation.run_lengths import MaskOptions, Runs, common, matched_masks, read_masks


class MaskFbetaOptions(MaskOptions):
    """Options of the metric."""

    beta: float = 1.0
    """Weight of recall relative to precision."""


def mask_fbeta(y_true: Runs, y_pred: Runs, *, beta: float) -> float:
    """Return (1 + b²) TP / (b² (TP + FN) + TP + FP), where b is beta.

    Returns:
        0 to 1; 0 if both masks are empty.
    """
    denominator = beta**2 * y_true.area + y_pred.area
    return (1 + beta**2) * common(y_true, y_pred) / denominator if denominator else 0.0


def _score(rows: Rows, y_pred: list[Runs], options: MaskFbetaOptions) -> float:
    return float(np.mean([mask_fbeta(*pair, beta=options.beta) for pair in matched_masks(rows, y_pred, options)]))


GRADER = define("mask-fbeta", "F-beta of masks", "maximize", read_masks, _score, options=MaskFbetaOptions, perfect=1.0)
