"""Overlap of masks: Dice coefficient, F-beta, and precision over thresholds."""

from __future__ import annotations

import numpy as np
from mleredux_tables import Rows, define

from mleredux_graders.segmentation.run_lengths import MaskOptions, Runs, common, matched_masks, read_masks


class DiceOptions(MaskOptions):
    """Options of Dice."""

    pooled: bool = False
    """Whether to pool the pixels of all images, instead of averaging over images."""


def dice(y_true: Runs, y_pred: Runs) -> float:
    """Return twice the number of common pixels divided by the pixels of both masks (Dice 1945).

    Returns:
        0 to 1; NaN if both masks are empty.
    """
    total = y_true.area + y_pred.area
    return 2 * common(y_true, y_pred) / total if total else float("nan")


def _dice(rows: Rows, y_pred: list[Runs], options: DiceOptions) -> float:
    masks = matched_masks(rows, y_pred, options)
    if options.pooled:
        both = sum(common(*pair) for pair in masks)
        total = sum(true.area + predicted.area for true, predicted in masks)
        return 2 * both / total if total else float("nan")
    scores = np.array([dice(*pair) for pair in masks])
    return float(np.where(np.isnan(scores), 1.0, scores).mean())


DICE = define("dice", "Dice coefficient", "maximize", read_masks, _dice, options=DiceOptions, perfect=1.0)


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


def _mask_fbeta(rows: Rows, y_pred: list[Runs], options: MaskFbetaOptions) -> float:
    return float(np.mean([mask_fbeta(*pair, beta=options.beta) for pair in matched_masks(rows, y_pred, options)]))


MASK_FBETA = define(
    "mask-fbeta", "F-beta of masks", "maximize", read_masks, _mask_fbeta, options=MaskFbetaOptions, perfect=1.0
)


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


def _mask_precision(rows: Rows, y_pred: list[Runs], options: MaskPrecisionOptions) -> float:
    masks = matched_masks(rows, y_pred, options)
    if options.empty_counts_as_full:
        height, width = options.height, options.width
        full = Runs(np.array([0]), np.array([int(height) * int(width)]))
        masks = [(true, full if true.area and not predicted.area else predicted) for true, predicted in masks]
    return float(np.mean([mask_precision(*pair) for pair in masks]))


MASK_PRECISION = define(
    "mask-precision",
    "Mean precision of masks over IoU thresholds",
    "maximize",
    read_masks,
    _mask_precision,
    options=MaskPrecisionOptions,
    perfect=1.0,
)
