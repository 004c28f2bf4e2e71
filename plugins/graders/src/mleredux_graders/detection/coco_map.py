"""Mean average precision as computed by COCO."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux_tables import Array, Options, Rows, compare_ids, define, numbers, texts

from mleredux_graders.detection.libraries import EXTRA, imported
from mleredux_graders.detection.pascal_voc import area_under_envelope, first_hits

FIELDS = 6
"""class, confidence, x_min, y_min, x_max, y_max."""
LARGEST_AREA = 1e10
MOST = 100
"""Maximum number of predictions per class and image."""


class CocoOptions(Options):
    """Options of the metric. Predictions are text, six pieces per box; the answers have one row per box."""

    iou: tuple[float, ...] = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
    """IoU threshold that a match must reach."""
    truth: tuple[str, ...] = ("class_id", "x_min", "y_min", "x_max", "y_max")
    """Columns of the answers: the class, and the corners of the box."""
    corners_as_sizes: bool = False
    """Quirk of vinbigdata: x_max and y_max are used as width and height."""
    number_zero_is_unmatched: bool = False
    """Quirk of vinbigdata: matches are stored as box numbers, where 0 means none."""
    pascal_voc: bool = False
    """Whether to use the average precision of PASCAL VOC 2010 instead of COCO's: the whole curve, IoU strictly above
    `iou`, no limit on predictions, and predictions whose best box is already taken are wrong."""


@dataclass(frozen=True)
class Boxes:
    """Boxes of all images, shape (boxes,) or (boxes, 4)."""

    images: Array
    classes: Array
    scores: Array
    corners: Array
    """x_min, y_min, x_max, y_max."""

    def areas(self) -> Array:
        """Return the areas, shape (boxes,)."""
        sides = self.corners[:, 2:] - self.corners[:, :2]
        product: Array = sides[:, 0] * sides[:, 1]
        return product


def rectangle_iou(a: Array, b: Array) -> Array:
    """Return the intersection over union of all pairs of rectangles.

    Args:
        a: x, y, width, height; shape (n, 4).
        b: The same, shape (m, 4).

    Returns:
        Shape (n, m); 0 if they do not overlap.
    """
    ends = np.minimum((a[:, :2] + a[:, 2:])[:, None, :], (b[:, :2] + b[:, 2:])[None, :, :])
    sides = ends - np.maximum(a[:, None, :2], b[None, :, :2])
    meet = (sides > 0).all(axis=2)
    common = sides[..., 0] * sides[..., 1]
    union = (a[:, 2] * a[:, 3])[:, None] + (b[:, 2] * b[:, 3])[None, :] - common
    ratio: Array = np.divide(common, union, out=np.zeros_like(common), where=meet)
    return ratio


def coco_map(true: Boxes, predicted: Boxes, options: CocoOptions) -> float:
    """Return the mean average precision over classes and IoU thresholds (COCOeval, all areas, 100 detections; or VOC).

    Returns:
        0 to 1; -1 if there are no classes.
    """
    sides = []
    for boxes in (true, predicted):
        shift = 0 if options.corners_as_sizes else boxes.corners[:, :2]
        sides.append(np.hstack([boxes.corners[:, :2], boxes.corners[:, 2:] - shift]))
    classes = np.unique(true.classes)
    if not options.pascal_voc:
        return _coco(true, predicted, sides, classes, options)
    results = []
    for name in classes:
        mine, theirs = np.flatnonzero(predicted.classes == name), np.flatnonzero(true.classes == name)
        results += [_voc_precision(true, predicted, sides, mine, theirs, threshold) for threshold in options.iou]
    return float(np.mean(results)) if results else -1.0


def _coco(true: Boxes, predicted: Boxes, sides: list[Array], classes: Array, options: CocoOptions) -> float:
    library, datasets = imported("faster_coco_eval"), []
    first = 0 if options.number_zero_is_unmatched else 1
    for boxes, places in zip((true, predicted), sides, strict=True):
        names = np.searchsorted(classes, boxes.classes)
        names[~np.isin(boxes.classes, classes)] = len(classes)
        ranks = -np.unique(-boxes.scores, return_inverse=True)[1]  # missing scores come last, as NumPy sorts
        columns = [boxes.images, names, ranks, boxes.areas(), places]
        fields = ("image_id", "category_id", "score", "area", "bbox")
        data = library.COCO()
        data.dataset = {
            "images": [{"id": image} for image in np.unique(boxes.images).tolist()],
            "categories": [{"id": number} for number in range(len(classes))],
            "annotations": [
                {"id": number, "iscrowd": 0, **dict(zip(fields, values, strict=True))}
                for number, values in enumerate(zip(*(each.tolist() for each in columns), strict=True), start=first)
            ],
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # for the box with number 0
            data.createIndex()
        datasets.append(data)
    evaluation = library.COCOeval_faster(*datasets, iouType="bbox")
    evaluation.params.iouThrs = np.array(options.iou)
    evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, LARGEST_AREA]], ["all"]
    evaluation.params.maxDets = [MOST]
    evaluation.evaluate()
    evaluation.accumulate()
    # thresholds, levels of recall, classes, areas, limits; -1 if a class has no true boxes
    precision = np.ascontiguousarray(evaluation.eval["precision"][:, :, :, 0, 0].transpose(2, 0, 1))
    results = precision[precision[:, 0, 0] > -1].mean(axis=2)
    return float(results.mean()) if results.size else -1.0


def _voc_precision(
    true: Boxes, predicted: Boxes, sides: list[Array], mine: Array, theirs: Array, threshold: float
) -> float:
    """Return the average precision of one class (PASCAL VOC 2010)."""
    by_image = _by_image(true.images, theirs)
    hits = np.zeros(len(predicted.scores), dtype=bool)
    for image, chosen in _by_image(predicted.images, mine).items():
        chosen = chosen[np.argsort(-predicted.scores[chosen], kind="stable")]
        overlaps = rectangle_iou(sides[1][chosen], sides[0][by_image.get(image, theirs[:0])])
        hits[chosen] = first_hits(overlaps, threshold)
    return area_under_envelope(hits[mine], predicted.scores[mine], len(theirs))


def _by_image(images: Array, boxes: Array) -> dict[int, Array]:
    """Return box numbers by image, both in ascending order."""
    ordered = boxes[np.argsort(images[boxes], kind="stable")]
    parts = np.split(ordered, np.flatnonzero(np.diff(images[ordered])) + 1)
    return {int(images[part[0]]): part for part in parts if len(part)}


def _parse(cells: Array, images: Array, name: str) -> Boxes:
    parts, where = [], []
    for row, (cell, image) in enumerate(zip(cells, images, strict=True), start=1):
        pieces = cell.split(" ")
        if len(pieces) % FIELDS:
            raise InvalidSubmission(f"Column {name!r}, row {row}: there must be six pieces per box.")
        try:
            parts += [float(piece) for piece in pieces]
        except ValueError:
            raise InvalidSubmission(f"Column {name!r}, row {row}: a piece is not a number.") from None
        where += [image] * (len(pieces) // FIELDS)
    values = np.array(parts, dtype=np.float64).reshape(-1, FIELDS)
    if not np.isfinite(values[:, 0]).all():
        raise InvalidSubmission(f"Column {name!r}: a class is not a number.")
    return Boxes(np.array(where, dtype=np.int64), np.trunc(values[:, 0]), values[:, 1], values[:, 2:])


def _read(rows: Rows, options: CocoOptions) -> Boxes:
    import pandas as pd

    (key,), (target,) = rows.ids, rows.targets
    compare_ids(rows.submission, rows.answers, rows.ids).refuse_differences()
    names = pd.Index(rows.answers[key]).unique()
    cells = texts(rows.submission[target], target)
    predicted = _parse(cells, names.get_indexer(pd.Index(rows.submission[key])), target)
    if options.pascal_voc and not np.isfinite(predicted.scores).all():
        raise InvalidSubmission(f"Column {target!r}: a confidence is missing or infinite.")
    return predicted


def _score(rows: Rows, predicted: Boxes, options: CocoOptions) -> float:
    import pandas as pd

    images, _ = pd.factorize(rows.answers[rows.ids[0]])
    truth = np.column_stack([numbers(rows.answers[name], name) for name in rows.truth])
    return coco_map(Boxes(images, truth[:, 0], np.zeros(len(images)), truth[:, 1:]), predicted, options)


GRADER = define(
    "coco-map",
    "Mean average precision (COCO)",
    "maximize",
    _read,
    _score,
    options=CocoOptions,
    perfect=1.0,
    matching=False,
).model_copy(update={"requires": {"faster_coco_eval": EXTRA}})
