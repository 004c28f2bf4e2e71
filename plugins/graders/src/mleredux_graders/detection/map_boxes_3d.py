"""Mean average precision of 3D boxes over IoU thresholds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux_tables import Array, Options, Rows, define, texts

from mleredux_graders.detection.libraries import EXTRA, imported
from mleredux_graders.detection.pascal_voc import first_hits


def corners(centres: Array, lengths: Array, widths: Array, yaws: Array) -> Array:
    """Return the corners of rectangles, counter-clockwise.

    Args:
        centers: x and y, shape (boxes, 2).
        lengths: Extents along (cos yaw, sin yaw), shape (boxes,).
        widths: Extents across it, shape (boxes,).
        yaws: Radians, shape (boxes,).

    Returns:
        Shape (boxes, 4, 2).
    """
    along = np.stack([np.cos(yaws), np.sin(yaws)], axis=1) * lengths[:, None] / 2
    across = np.stack([-np.sin(yaws), np.cos(yaws)], axis=1) * widths[:, None] / 2
    return np.stack([along + across, across - along, -along - across, along - across], axis=1) + centres[:, None, :]


def overlap_areas(a: Array, b: Array) -> Array:
    """Return the intersection area of each pair of rectangles.

    Args:
        a: Corners, counter-clockwise, shape (pairs, 4, 2).
        b: The same.

    Returns:
        Shape (pairs,).
    """
    shapely = imported("shapely")
    origin = a.mean(axis=1, keepdims=True)  # far from the origin, areas would lose precision
    areas: Array = shapely.area(shapely.intersection(shapely.polygons(a - origin), shapely.polygons(b - origin)))
    return areas


FIELDS = 9
"""confidence, center x, y, z, width, length, height, yaw, class."""

_CHUNK = 4096
"""Number of predicted boxes compared at a time, to bound memory."""
_LARGEST = 1e100
"""Boxes of this size have an IoU with true boxes that is numerically 0, and their squares overflow."""


class Boxes3dOptions(Options):
    """Options of the metric. Truth and predictions are text: nine pieces per box, separated by single spaces."""

    thresholds: tuple[float, ...] = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
    absent_classes_count: bool = False
    """Whether boxes of classes absent from a sample are false positives: such a class has an average precision of 0 in
    the sample's mean. Otherwise they cost nothing, as published."""


@dataclass(frozen=True)
class Boxes:
    """Boxes of one sample.

    Attributes:
        numbers: confidence, x, y, z, width, length, height, yaw; shape (boxes, 8).
        classes: Names, shape (boxes,).
    """

    numbers: Array
    classes: Array

    def of(self, name: str) -> Array:
        """Return the numbers of the boxes of a class, by descending confidence."""
        chosen = self.numbers[self.classes == name]
        ordered: Array = chosen[np.argsort(-chosen[:, 0], kind="stable")]
        return ordered


def parse(text: str) -> Boxes:
    """Read the boxes of one sample.

    Raises:
        ValueError: The text is malformed; the message completes a sentence.
    """
    pieces = text.split(" ") if text.strip() else []
    if len(pieces) % FIELDS:
        raise ValueError("must have nine pieces per box, separated by single spaces")
    groups = [pieces[start : start + FIELDS] for start in range(0, len(pieces), FIELDS)]
    try:
        numbers = np.array([[float(piece) for piece in group[:-1]] for group in groups], dtype=np.float64)
    except ValueError:
        raise ValueError("has text where a number is expected") from None
    boxes = Boxes(numbers.reshape(-1, FIELDS - 1), np.array([group[-1] for group in groups], dtype=object))
    if np.isinf(boxes.numbers[:, 7]).any():
        raise ValueError("has an infinite yaw")
    return boxes


def iou_3d(a: Array, b: Array) -> Array:
    """Return the intersection over union of all pairs of boxes, which are rotated about the z axis only.

    Args:
        a: confidence, x, y, z, width, length, height, yaw; shape (n, 8).
        b: The same, shape (m, 8).

    Returns:
        0 to 1, shape (n, m).
    """
    first, second = np.repeat(np.arange(len(a)), len(b)), np.tile(np.arange(len(b)), len(a))
    tops, bottoms = [box[:, 3] + box[:, 6] / 2 for box in (a, b)], [box[:, 3] - box[:, 6] / 2 for box in (a, b)]
    high = np.minimum(tops[0][first], tops[1][second]) - np.maximum(bottoms[0][first], bottoms[1][second])
    reach = [np.hypot(box[:, 4], box[:, 5]) / 2 for box in (a, b)]
    apart = np.hypot(*(a[first, 1:3] - b[second, 1:3]).T)
    far = reach[0][first] + reach[1][second]
    near = (high > 0) & (apart <= far) & (far < _LARGEST)
    ground = np.zeros(len(first))
    outline = [corners(box[:, 1:3], box[:, 5], box[:, 4], box[:, 7]) for box in (a, b)]
    ground[near] = overlap_areas(outline[0][first[near]], outline[1][second[near]])
    common = ground * np.maximum(high, 0)
    volumes = [box[:, 4] * box[:, 5] * box[:, 6] for box in (a, b)]
    union = volumes[0][first] + volumes[1][second] - common
    ratio: Array = np.clip(common / union, 0, 1).reshape(len(a), len(b))
    return ratio


def average_precisions(iou: Array, thresholds: Array) -> Array:
    """Return the area under the all-points envelope of precision over recall for each threshold.

    Args:
        iou: IoU of predicted boxes, by descending confidence, with true boxes; shape (predicted, true).
        thresholds: Values that an IoU must exceed.

    Returns:
        Shape (thresholds,).
    """
    results = np.zeros(len(thresholds))
    for number, threshold in enumerate(thresholds):
        true_positives = np.cumsum(first_hits(iou, threshold))
        recall = true_positives / iou.shape[1]
        precision = true_positives / np.arange(1, len(iou) + 1)
        recall, precision = np.concatenate([[0], recall, [1]]), np.concatenate([[0], precision, [0]])
        precision = np.maximum.accumulate(precision[::-1])[::-1]
        results[number] = (np.diff(recall) * precision[1:]).sum()
    return results


def _check(boxes: Array) -> None:
    if np.isnan(boxes[:, 1:]).any() or not (boxes[:, 4:7] > 0).all():
        raise ValueError("has a box with a missing number or a size that is not above 0")
    if np.isinf(boxes[:, [1, 2, 4, 5]]).any():
        raise ValueError("has a box whose position or size is infinite")


def _sample(true: Boxes, predicted: Boxes, thresholds: Array, absent_classes_count: bool) -> Array:
    results = []
    for name in dict.fromkeys([*true.classes, *(predicted.classes if absent_classes_count else ())]):
        boxes, own = predicted.of(name), true.numbers[true.classes == name]
        if len(boxes) and len(own):
            parts = [iou_3d(boxes[start : start + _CHUNK], own) for start in range(0, len(boxes), _CHUNK)]
            results.append(average_precisions(np.concatenate(parts), thresholds))
        else:
            results.append(np.zeros(len(thresholds)))
    return np.mean(results, axis=0) if results else np.full(len(thresholds), np.nan)


def _read(rows: Rows, options: Boxes3dOptions) -> list[Boxes]:
    """Return the boxes of each row. Boxes of classes absent from a row may be malformed here, but not in validation."""
    (target,), samples = rows.targets, []
    true = None if rows.form or options.absent_classes_count else _true(rows)
    cells = texts(rows.predicted(target), target, missing="blank")
    for place, (row, cell) in enumerate(zip(rows.submission_rows, cells, strict=True)):
        try:
            boxes = parse(cell)
            _check(boxes.numbers if true is None else boxes.numbers[np.isin(boxes.classes, true[place].classes)])
            samples.append(boxes)
        except ValueError as error:
            raise InvalidSubmission(f"Column {target!r}, row {int(row) + 1}: the text {error}.") from None
    return samples


def _true(rows: Rows) -> list[Boxes]:
    (truth,) = rows.truth
    return [parse(cell) for cell in texts(rows.true(truth), truth)]


def _score(rows: Rows, predicted: list[Boxes], options: Boxes3dOptions) -> float:
    thresholds, pairs = np.array(options.thresholds), zip(_true(rows), predicted, strict=True)
    counted = options.absent_classes_count
    return float(np.mean([_sample(true, boxes, thresholds, counted) for true, boxes in pairs]))


GRADER = define(
    "map-boxes-3d",
    "Mean average precision of 3D boxes",
    "maximize",
    _read,
    _score,
    options=Boxes3dOptions,
    perfect=1.0,
).model_copy(update={"requires": {"shapely": EXTRA}})
