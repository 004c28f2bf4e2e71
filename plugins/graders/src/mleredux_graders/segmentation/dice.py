"""Dice coefficient."""

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


def _score(rows: Rows, y_pred: list[Runs], options: DiceOptions) -> float:
    masks = matched_masks(rows, y_pred, options)
    if options.pooled:
        both = sum(common(*pair) for pair in masks)
        total = sum(true.area + predicted.area for true, predicted in masks)
        return 2 * both / total if total else float("nan")
    scores = np.array([dice(*pair) for pair in masks])
    return float(np.where(np.isnan(scores), 1.0, scores).mean())


GRADER = define("dice", "Dice coefficient", "maximize", read_masks, _score, options=DiceOptions, perfect=1.0)
