"""Kendall's tau of many orderings, pooled."""

from __future__ import annotations

import numpy as np
from mleredux.errors import InvalidSubmission, TaskBroken
from mleredux.plugin.grader import Array, Options, Rows, define, texts


class KendallOptions(Options):
    """What it takes: cells with pieces in order, white space between."""


def inversions(ranks: Array) -> int:
    """Pairs that stand in the wrong order.

    Args:
        ranks: Shape (pieces,).
    """
    return int(np.count_nonzero(np.triu(ranks[:, None] > ranks[None, :], k=1)))


def _ranks(true: list[str], predicted: list[str], row: int, name: str) -> Array:
    if len(true) != len(predicted):
        raise InvalidSubmission(
            f"Column {name!r} has {len(predicted)} pieces in row {row} where {len(true)} are expected."
        )
    places: dict[str, int] = {}
    for place, piece in enumerate(predicted):
        places.setdefault(piece, place)
    try:
        return np.array([places[piece] for piece in true])
    except KeyError:
        raise InvalidSubmission(f"Column {name!r} must order exactly the pieces given; row {row} does not.") from None


def _score(rows: Rows, options: KendallOptions) -> float:
    (target,), (truth,) = rows.targets, rows.truth
    y_pred = texts(rows.predicted(target), target, numbers="text")
    y_true = texts(rows.true(truth), truth, missing="blank", numbers="text")
    wrong = pairs = 0
    for row, true, predicted in zip(rows.submission_rows, y_true, y_pred, strict=True):
        pieces = true.split()
        wrong += inversions(_ranks(pieces, predicted.split(), int(row) + 1, target))
        pairs += len(pieces) * (len(pieces) - 1)
    if not pairs:
        raise TaskBroken("No row of the answers has two pieces to order.", hint="Prepare the task again.")
    return 1 - 4 * wrong / pairs


GRADER = define("kendall-tau-pooled", "Pooled Kendall tau", "maximize", _score, options=KendallOptions, perfect=1.0)
