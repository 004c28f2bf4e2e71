"""Mean precision of one mask per image over IoU thresholds."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Rows, define

from mleredux_graders.segmentation.run_lengths import MaskOptions, Runs, common, matched_masks, read_masks

THRESHOLDS = np.arange(0.5, 1, 0.05)
"""0.5, 0.55, 0.6000000000000001, …: with the floating-point errors of the published metric."""


class MaskPrecisionOptions(MaskOptions):
    """Options of the metric."""

    empty_counts_as_full: bool = False
    """Quirk of tgs-salt: if the truth is not empty, an empty prediction counts as the whole image."""


def mask_precision(y_true: Runs, y_pred: Runs) -> float:
    """Return the share of the ten thresholds 0.5, 0.55, …, 0.95 that the IoU exceeds.

    Returns:
        0 to 1; 1 if both masks are empty, 0 if only one is.
    """
    if not y_true.area or not y_pred.area:
        return float(y_true.area == y_pred.area)
    both = common(y_true, y_pred)
    return float((both / (y_true.area + y_pred.area - both) > THRESHOLDS).mean())


def _score(rows: Rows, y_pred: list[Runs], options: MaskPrecisionOptions) -> float:
    masks = matched_masks(rows, y_pred, options)
    if options.empty_counts_as_full:
        height, width = options.height, options.width
        full = Runs(np.array([0]), np.array([int(height) * int(width)]))
        masks = [(true, full if true.area and not predicted.area else predicted) for true, predicted in masks]
    return float(np.mean([mask_precision(*pair) for pair in masks]))


GRADER = define(
    "mask-precision",
    "Mean precision of masks over IoU thresholds",
    "maximize",
    read_masks,
    _score,
    options=MaskPrecisionOptions,
    perfect=1.0,
)
