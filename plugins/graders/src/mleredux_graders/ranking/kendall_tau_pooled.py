"""Kendall's tau of many orderings, pooled."""

from __future__ import annotations

import numpy as np
from mleredux.errors import InvalidSubmission, TaskBroken
from mleredux_tables import Array, Options, Rows, define, texts


class KendallOptions(Options):
    """Options of the metric: cells with ordered pieces, separated by white space."""


def inversions(ranks: Array) -> int:
    """Count the pairs in the wrong order.

    Args:
        ranks: Shape (pieces,).
    """
    return int(np.count_nonzero(np.triu(ranks[:, None] > ranks[None, :], k=1)))


def _places(expected: list[str], predicted: list[str], row: int, name: str) -> dict[str, int]:
    if len(expected) != len(predicted):
        raise InvalidSubmission(
            f"Column {name!r} has {len(predicted)} pieces in row {row}; {len(expected)} are expected."
        )
    places: dict[str, int] = {}
    for place, piece in enumerate(predicted):
        places.setdefault(piece, place)
    if not places.keys() >= set(expected):
        raise InvalidSubmission(f"Column {name!r} must be an order of the given pieces; row {row} is not.")
    return places


def _pieces(rows: Rows) -> list[list[str]]:
    """Return the pieces of each row, in the order of the answers, or in that of the sample."""
    (truth,) = rows.truth
    return [cell.split() for cell in texts(rows.true(truth), truth, missing="blank", numbers="text")]


def _read(rows: Rows, options: KendallOptions) -> list[dict[str, int]]:
    """Return the predicted position of each piece, row by row."""
    (target,) = rows.targets
    y_pred = texts(rows.predicted(target), target, numbers="text")
    return [
        _places(pieces, predicted.split(), int(row) + 1, target)
        for row, pieces, predicted in zip(rows.submission_rows, _pieces(rows), y_pred, strict=True)
    ]


def _score(rows: Rows, predicted: list[dict[str, int]], options: KendallOptions) -> float:
    wrong = pairs = 0
    for pieces, places in zip(_pieces(rows), predicted, strict=True):
        wrong += inversions(np.array([places[piece] for piece in pieces]))
        pairs += len(pieces) * (len(pieces) - 1)
    if not pairs:
        raise TaskBroken("No row of the answers has two pieces to order.", hint="Prepare the task again.")
    return 1 - 4 * wrong / pairs


GRADER = define(
    "kendall-tau-pooled", "Pooled Kendall tau", "maximize", _read, _score, options=KendallOptions, perfect=1.0
)
