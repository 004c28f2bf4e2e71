"""F1 for labeled points in boxes."""

from __future__ import annotations

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux.plugin.grader import Score
from mleredux_tables import Missing, Options, Rows, texts

from mleredux_graders.directions import similarity


class LocatedOptions(Options):
    """Options of the metric. Truth has label, x, y, width, height per box; predictions have label, x, y per point."""

    missing: Missing = "refuse"
    """`blank`: a missing cell is a page without points."""
    most_points: int | None = None
    """Maximum number of points per page; None for no limit."""


def match_page(boxes: list[str], points: list[str]) -> tuple[int, int, int]:
    """Return true positives, false positives and false negatives of one page.

    A box matches the first unused point with its label that is strictly inside.

    Args:
        boxes: Five pieces per box.
        points: Three pieces per point.

    Raises:
        ValueError: A coordinate is not a number.
    """
    places = np.array([[float(x), float(y)] for x, y in zip(points[1::3], points[2::3], strict=True)]).reshape(-1, 2)
    labels = np.array(points[0::3], dtype=object)
    waiting = {label: places[labels == label] for label in set(boxes[0::5])}
    hits = 0
    for start in range(0, len(boxes), 5):
        left, top, width, height = map(float, boxes[start + 1 : start + 5])
        x, y = waiting[boxes[start]].T
        inside = np.flatnonzero((left < x) & (x < left + width) & (top < y) & (y < top + height))
        if len(inside):
            waiting[boxes[start]] = np.delete(waiting[boxes[start]], inside[0], axis=0)
            hits += 1
    return hits, len(points) // 3 - hits, len(boxes) // 5 - hits


def _read(rows: Rows, options: LocatedOptions) -> list[list[str]]:
    """Return the pieces of each page's points, with the second and third piece of each point being numbers."""
    (target,) = rows.targets
    pages, true = [], None if rows.form else texts(rows.true(rows.truth[0]), rows.truth[0], missing="blank")
    cells = texts(rows.predicted(target), target, missing=options.missing)
    for place, (row, cell) in enumerate(zip(rows.submission_rows, cells, strict=True)):
        points = cell.split(" ") if cell else []
        where = f"Column {target!r}, row {int(row) + 1}"
        if options.most_points is not None and len(points) // 3 > options.most_points:
            raise InvalidSubmission(
                f"{where}: there are {len(points) // 3:,} points; a page may have at most {options.most_points:,}."
            )
        pages.append(points)
        if true is not None and not true[place]:
            continue  # no hits are possible there, so points are only counted
        if len(points) % 3:
            raise InvalidSubmission(f"{where}: there must be three pieces per point, separated by single spaces.")
        try:
            [float(piece) for place, piece in enumerate(points) if place % 3]
        except ValueError:
            raise InvalidSubmission(f"{where}: a coordinate is not a number.") from None
    return pages


def _score(rows: Rows, predicted: list[list[str]], options: LocatedOptions) -> Score:
    (truth,) = rows.truth
    hits = false = missed = 0
    for true, points in zip(texts(rows.true(truth), truth, missing="blank"), predicted, strict=True):
        if not true:
            false += len(points) // 3
            continue
        page = match_page(true.split(" "), points)
        hits, false, missed = (total + count for total, count in zip((hits, false, missed), page, strict=True))
    precision = hits / (hits + false) if hits + false else 0.0
    recall = hits / (hits + missed) if hits + missed else 0.0
    value = 2 * precision * recall / (precision + recall) if precision and recall else 0.0
    return Score(value=value, details={"precision": precision, "recall": recall})


GRADER = similarity("located-f1", "F1 of labeled points in boxes", _read, _score, options=LocatedOptions)
