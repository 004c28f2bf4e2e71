"""Mean over classes of the average precision of boxes, with missed boxes ranked last."""

from __future__ import annotations

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux.plugin.grader import Score
from mleredux_tables import Array, Options, Rows, texts

from mleredux_graders.classification.curves import average_precision
from mleredux_graders.detection.pascal_voc import area_under_envelope, first_hits
from mleredux_graders.directions import similarity

FIELDS = 6
"""class, confidence, x_min, y_min, x_max, y_max."""


class BoxOptions(Options):
    """Options of the metric. Truth and predictions are text: six pieces per box, separated by whitespace."""

    iou: float = 0.5
    """IoU threshold that a match must exceed."""
    pascal_voc: bool = False
    """Whether to use the average precision of PASCAL VOC 2010, where missed boxes add nothing. Otherwise, as published,
    they share the confidence 0 with rows without any pair, and precision is not interpolated."""


def box_iou(a: Array, b: Array) -> Array:
    """Return the intersection over union of all pairs of boxes.

    Args:
        a: x_min, y_min, x_max, y_max; shape (n, 4).
        b: The same, shape (m, 4).

    Returns:
        Shape (n, m); 0 if the union is not above 0.
    """
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    common = np.maximum(high - low, 0).prod(axis=2)
    areas = [(boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) for boxes in (a, b)]
    union = areas[0][:, None] + areas[1][None, :] - common
    ratio: Array = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return ratio


def match_boxes(true: Array, predicted: Array, iou: float) -> list[tuple[float, float]]:
    """Return pairs of (truth, score) for one class in one row.

    Predictions, by descending confidence, match the best free true box that overlaps enough. Unmatched true boxes have
    score 0; a row without any pair is one negative with score 0.

    Args:
        true: Shape (n, 4).
        predicted: Confidence and box, shape (m, 5).
    """
    predicted = predicted[np.argsort(-predicted[:, 0], kind="stable")]
    overlaps, free, pairs = box_iou(predicted[:, 1:], true), np.ones(len(true), dtype=bool), []
    for confidence, row in zip(predicted[:, 0], overlaps, strict=True):
        candidates = np.where(free & (row > iou), row, -np.inf)
        hit = len(candidates) > 0 and np.isfinite(candidates.max())
        if hit:
            free[candidates.argmax()] = False
        pairs.append((float(hit), float(confidence)))
    pairs += [(1.0, 0.0)] * int(free.sum())
    return pairs or [(0.0, 0.0)]


def pooled_average_precision(rows: list[tuple[Array, Array]], iou: float) -> float:
    """Return the average precision of the pairs of all rows. See `match_boxes` and `voc_average_precision`."""
    return average_precision(*np.array([pair for row in rows for pair in match_boxes(*row, iou)]).T)


def voc_average_precision(rows: list[tuple[Array, Array]], iou: float) -> float:
    """Return the average precision of one class (PASCAL VOC 2010).

    Args:
        rows: True boxes, shape (n, 4), and confidence and box of predictions, shape (m, 5), of each row.
        iou: Threshold that the IoU of a hit must exceed.
    """
    hits = []
    for true, predicted in rows:
        order = np.argsort(-predicted[:, 0], kind="stable")
        matched = np.zeros(len(predicted), dtype=bool)
        matched[order] = first_hits(box_iou(predicted[order, 1:], true), iou)
        hits.append(matched)
    scores = np.concatenate([predicted[:, 0] for _, predicted in rows])
    return area_under_envelope(np.concatenate(hits), scores, sum(len(true) for true, _ in rows))


def _parse(cell: str) -> tuple[Array, Array]:
    """Parse a cell: classes, shape (n,), and confidence and box, shape (n, 5)."""
    pieces = cell.split()
    if len(pieces) % FIELDS:
        raise ValueError("must have six pieces per box")
    groups = [pieces[start : start + FIELDS] for start in range(0, len(pieces), FIELDS)]
    try:
        values = np.array([[float(piece) for piece in group[1:]] for group in groups], dtype=np.float64)
    except ValueError:
        raise ValueError("has text where a number is expected") from None
    return np.array([group[0] for group in groups], dtype=object), values.reshape(-1, FIELDS - 1)


def _read(rows: Rows, options: BoxOptions) -> list[tuple[Array, Array]]:
    """Return classes, confidence and box of the predictions of each row, without classes that never occur.

    Boxes of such classes may be malformed here; validation, which does not know which classes occur, checks all boxes.
    """
    (target,), known = rows.targets, _classes(rows)
    boxes = []
    for row, cell in zip(rows.submission_rows, texts(rows.predicted(target), target), strict=True):
        where = f"Column {target!r}, row {int(row) + 1}"
        try:
            classes, values = _parse(cell)
        except ValueError as error:
            raise InvalidSubmission(f"{where}: the text {error}.") from None
        if known is not None:
            occurs = np.isin(classes, known)
            classes, values = classes[occurs], values[occurs]
        if not np.isfinite(values[:, 0]).all():
            raise InvalidSubmission(f"{where}: a confidence is missing or infinite.")
        boxes.append((classes, values))
    return boxes


def _true(rows: Rows) -> list[tuple[Array, Array]]:
    (truth,) = rows.truth
    return [_parse(cell) for cell in texts(rows.true(truth), truth, missing="blank")]


def _classes(rows: Rows) -> list[str] | None:
    """Return the true classes; None if they are not known."""
    return None if rows.form else sorted({name for names, _ in _true(rows) for name in names})


def _score(rows: Rows, predicted: list[tuple[Array, Array]], options: BoxOptions) -> Score:
    answers = _true(rows)
    measure = voc_average_precision if options.pascal_voc else pooled_average_precision
    precisions = {}
    for name in _classes(rows) or ():
        boxes = [
            (true[true_classes == name, 1:], values[classes == name])
            for (true_classes, true), (classes, values) in zip(answers, predicted, strict=True)
        ]
        precisions[name] = measure(boxes, options.iou)
    return Score(value=float(np.mean(list(precisions.values()))), details={"classes": precisions})


GRADER = similarity(
    "average-precision-boxes",
    "Mean average precision of boxes, missed ones ranked last",
    _read,
    _score,
    options=BoxOptions,
)
