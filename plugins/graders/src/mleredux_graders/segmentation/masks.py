"""Overlap of masks: Dice coefficient, also with the Hausdorff distance, F-beta, and precision over thresholds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux.plugin.grader import Score
from mleredux_tables import Array, Rows, texts

from mleredux_graders.directions import similarity
from mleredux_graders.pieces import distinct
from mleredux_graders.segmentation.run_lengths import (
    MaskOptions,
    Runs,
    common,
    matched_masks,
    read_masks,
    shapes,
    true_masks,
)


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


DICE = similarity("dice", "Dice coefficient", read_masks, _dice, options=DiceOptions)


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


MASK_FBETA = similarity("mask-fbeta", "F-beta of masks", read_masks, _mask_fbeta, options=MaskFbetaOptions)


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


MASK_PRECISION = similarity(
    "mask-precision",
    "Mean precision of masks over IoU thresholds",
    read_masks,
    _mask_precision,
    options=MaskPrecisionOptions,
)


class DiceHausdorffOptions(MaskOptions):
    """Options of the metric. The first id column names slices `<volume>_slice_<number>`."""

    separator: str = "_slice_"
    """Separator between the name of a volume and that of its slice."""
    dice_weight: float = 0.4
    hausdorff_weight: float = 0.6
    most_voxels: float = 10.0
    """Size ratio above which a predicted volume is assigned the maximum distance."""
    classes: str | None = None
    """Column of the answers with the class of each mask. Each class of a volume then has its own distance, and all are
    averaged; otherwise all masks of a volume are joined."""

    def form_columns(self) -> tuple[str, ...]:
        """Return the columns that the options name."""
        return (*super().form_columns(), *((self.classes,) if self.classes else ()))


def hausdorff(a: Array, b: Array) -> float:
    """Return the largest distance from a point of either set to the nearest point of the other (Hausdorff 1914).

    Args:
        a: Coordinates, shape (points, dimensions), not empty.
        b: The same.
    """
    from scipy.spatial import cKDTree

    return float(max(cKDTree(b).query(a)[0].max(), cKDTree(a).query(b)[0].max()))


class _Volume:
    """The voxels in the union of all masks of a volume."""

    def __init__(self, slices: list[tuple[str, list[Runs], tuple[int, int]]]) -> None:
        if len({shape for _, _, shape in slices}) > 1:
            raise InvalidSubmission("The rows of one scan have masks of different sizes; keep the order of the sample.")
        names = list(dict.fromkeys(name for name, _, _ in slices))
        height, width = slices[0][2]
        self.shape = (len(names), height, width)
        place = {name: number * height * width for number, name in enumerate(names)}
        parts = [runs.pixels() + place[name] for name, masks, _ in slices for runs in masks]
        self.voxels = distinct(np.concatenate(parts))

    def coordinates(self, chosen: Array, shape: tuple[int, int, int]) -> Array:
        """Return slice, row and column of voxels, divided by a shape; pixels are numbered in column-major order."""
        _, height, width = self.shape
        number, pixel = np.divmod(chosen, height * width)
        column, row = np.divmod(pixel, height)
        scaled: Array = np.stack([number, row, column], axis=1) / np.array(shape)
        return scaled


def _volumes(
    ids: Array, classes: Array, masks: list[Runs], sizes: list[tuple[int, int]], separator: str
) -> list[_Volume]:
    """Return the volumes of each class, with slices sorted by id."""
    grouped: dict[tuple[str, str], list[tuple[str, list[Runs], tuple[int, int]]]] = {}
    for row in sorted(range(len(ids)), key=lambda row: (str(classes[row]), str(ids[row]))):
        name = str(ids[row])
        key = str(classes[row]), name.split(separator)[0]
        grouped.setdefault(key, []).append((name, [masks[row]], sizes[row]))
    return [_Volume(slices) for slices in grouped.values()]


def volume_distance(true: _Volume, predicted: _Volume, most_voxels: float) -> float:
    """Return the Hausdorff distance of two volumes as a share of the diagonal of the unit cube.

    Returns:
        0 to 1; NaN if both are empty; 1 if only one is empty, or if the prediction is far too large.
    """
    if not len(true.voxels) and not len(predicted.voxels):
        return float("nan")
    if true.shape == predicted.shape and np.array_equal(true.voxels, predicted.voxels):
        return 0.0
    if not len(true.voxels) or not len(predicted.voxels) or len(predicted.voxels) > most_voxels * len(true.voxels):
        return 1.0
    surface, other = true.coordinates(true.voxels, true.shape), predicted.coordinates(predicted.voxels, true.shape)
    return hausdorff(surface, other) / float(np.sqrt(3))


def _sizes(rows: Rows, options: DiceHausdorffOptions) -> list[tuple[int, int]]:
    heights, widths = shapes(rows.answers, options)
    return [(int(height), int(width)) for height, width in zip(heights, widths, strict=True)]


class _Predictions(NamedTuple):
    """The masks of matched rows, and their volumes."""

    masks: list[Runs]
    volumes: list[_Volume]


def _read_volumes(rows: Rows, options: DiceHausdorffOptions) -> _Predictions:
    key = rows.ids[0]
    masks, sizes = read_masks(rows, options), _sizes(rows, options)
    mine = texts(rows.predicted(key), key)
    classes = np.full(len(mine), "") if options.classes is None else rows.true(options.classes)
    own_sizes = [sizes[row] for row in rows.answer_rows]
    return _Predictions(masks, _volumes(mine, classes, masks, own_sizes, options.separator))


def _dice_hausdorff(rows: Rows, predicted: _Predictions, options: DiceHausdorffOptions) -> Score:
    key = rows.ids[0]
    theirs = texts(rows.answers[key], key, numbers="text")
    classes = np.full(len(theirs), "") if options.classes is None else rows.answers[options.classes]
    true = _volumes(theirs, classes, true_masks(rows, options), _sizes(rows, options), options.separator)
    pairs = zip(true, predicted.volumes, strict=False)
    distances = np.array([volume_distance(a, b, options.most_voxels) for a, b in pairs])
    slices = np.array([dice(*pair) for pair in matched_masks(rows, predicted.masks, options)])
    overlap = float(np.nanmean(slices)) if not np.isnan(slices).all() else float("nan")
    distance = float(np.nanmean(distances)) if not np.isnan(distances).all() else float("nan")
    value = options.dice_weight * overlap + options.hausdorff_weight * (1 - distance)
    return Score(value=value, details={"dice": overlap, "hausdorff": distance})


DICE_HAUSDORFF = similarity(
    "dice-hausdorff", "Dice and 3D Hausdorff distance", _read_volumes, _dice_hausdorff, options=DiceHausdorffOptions
)
