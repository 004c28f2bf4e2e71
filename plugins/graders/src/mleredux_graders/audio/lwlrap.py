"""Label-weighted label-ranking average precision."""

from __future__ import annotations

from mleredux.errors import InvalidSubmission
from mleredux_tables import Array, Rows

from mleredux_graders.classification.scores import ScoreOptions, read_scores, true_indicators
from mleredux_graders.directions import similarity

_CHUNK = 1 << 24
"""Maximum number of cells in memory when comparing all labels of rows pairwise."""


def lwlrap(y_true: Array, y_score: Array) -> float:
    """Return the mean, over all true (row, label) pairs, of the share of true labels among those scored as high.

    Args:
        y_true: 0 and 1, shape (rows, labels).
        y_score: The same shape; only the order within a row counts, and ties get the worst rank.

    Returns:
        0 to 1; NaN if there are no true labels.
    """
    total, pairs, labels = 0.0, 0.0, y_true.shape[1]
    step = max(_CHUNK // (labels * labels), 1)
    for start in range(0, len(y_true), step):
        true, score = y_true[start : start + step], y_score[start : start + step]
        at_least = score[:, None, :] >= score[:, :, None]
        ranks = at_least.sum(axis=2)
        hits = (at_least & (true[:, None, :] > 0)).sum(axis=2)
        total += float((true * hits / ranks).sum())
        pairs += float(true.sum())
    return total / pairs if pairs else float("nan")


def _read(rows: Rows, options: ScoreOptions) -> Array:
    if all(rows.submission[name].dtype.kind == "b" for name in rows.targets):
        raise InvalidSubmission("The columns of the classes must contain scores, but contain true and false.")
    return read_scores(rows, options)


def _score(rows: Rows, y_score: Array, options: ScoreOptions) -> float:
    return lwlrap(true_indicators(rows), y_score)


GRADER = similarity("lwlrap", "Label-weighted label-ranking average precision", _read, _score, options=ScoreOptions)
