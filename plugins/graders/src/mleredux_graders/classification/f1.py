"""F1, precision and recall of labels, of sets of labels, and of probabilities."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Literal

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux_tables import (
    Array,
    Cells,
    Missing,
    Options,
    Rows,
    Utf8,
    in_blocks,
    numbers,
    predicted_cells,
    true_cells,
)

from mleredux_graders.classification.labels import LabelOptions, label_counts, label_grader, ratio
from mleredux_graders.classification.scores import true_indicators
from mleredux_graders.directions import similarity
from mleredux_graders.pieces import overlap, split_words

Average = Literal["binary", "micro", "macro", "weighted"]


class F1Options(LabelOptions):
    """Options of F1."""

    average: Average = "macro"
    """Averaging; `binary` scores the label that sorts last (1, True)."""


def fbeta(
    y_true: Array,
    y_pred: Array,
    *,
    beta: float = 1.0,
    average: Average = "macro",
    sample_weight: Array | None = None,
) -> float:
    """Return F-beta over all labels that occur in truth or prediction; 0 if a denominator is 0.

    Args:
        y_true: Labels as integers from 0, shape (rows,).
        y_pred: The same.
        beta: Weight of recall: 1 for F1, 0 for precision, infinity for recall.
        average: Over labels, or over rows (`micro`).

    Returns:
        0 to 1.
    """
    hits, true, predicted = label_counts(y_true, y_pred, sample_weight=sample_weight)
    if average == "micro":
        hits, true, predicted = hits.sum(), true.sum(), predicted.sum()
    # the harmonic form, with both sides divided by beta squared if only recall is left
    share = 1 / (1 + beta**2)
    scores = ratio(hits, share * predicted + (1 - share) * true)
    if average == "micro":
        return float(scores)
    if average == "binary":
        return float(scores[-1])
    occurs = (true > 0) | (predicted > 0)
    return float(np.average(scores[occurs], weights=true[occurs] if average == "weighted" else None))


def _averaged(options: F1Options) -> dict[str, Any]:
    return {"average": options.average}


GRADER, PRECISION, RECALL = (
    label_grader(id, title, partial(fbeta, beta=beta), options=F1Options, chosen=_averaged)
    for id, title, beta in (("f1", "F1", 1.0), ("precision", "Precision", 0.0), ("recall", "Recall", np.inf))
)


SetAverage = Literal["micro", "samples"]
_NONE: Array = np.empty(0, dtype=np.int64)


class MultilabelOptions(Options):
    """Options of F1 for sets of labels."""

    missing: Missing = "refuse"
    """`blank`: a missing cell is a row without labels."""
    unknown: bool = False
    """Whether predicted labels that never occur in the answers count as false positives instead of being ignored."""
    average: SetAverage = "micro"
    """`micro`: counts of all rows are pooled; `samples`: the mean of each row's F1."""


def f1_multilabel(rows: Iterable[tuple[Utf8, Utf8]], *, unknown: bool = False, average: SetAverage = "micro") -> float:
    """Return 2 TP / (2 TP + FP + FN), over all pairs of row and label or row by row.

    Args:
        rows: Blocks of true and predicted texts of labels separated by whitespace; repeats within a row count once.
        unknown: Whether predicted labels that never occur in the truth are false positives.
        average: `micro` pools the counts of all rows, and is 0 if there are no labels; `samples` is the mean over rows,
            where a row without labels on both sides counts as 1.

    Returns:
        0 to 1; NaN for the mean over no rows.
    """
    count = 0
    hits, wanted, surplus = [_NONE], [_NONE], [_NONE]
    labels, missed = [Utf8.of_cells([])], [Utf8.of_cells([])]
    for texts in rows:
        y_true, y_pred = (split_words(side) for side in texts)
        common = overlap(y_true, y_pred)
        wrong = common.predicted[~common.hits]
        hits.append(y_pred.rows[common.predicted[common.hits]] + count)
        wanted.append(y_true.rows[common.true] + count)
        surplus.append(y_pred.rows[wrong] + count)
        missed.append(y_pred.texts.subset(wrong))
        labels.append(y_true.texts.subset(np.flatnonzero(y_true.texts.first_equals() == np.arange(len(y_true.texts)))))
        count += len(y_true.firsts)
    counted = np.concatenate(surplus)
    if not unknown:
        counted = counted[Utf8.joined(missed).among(Utf8.joined(labels))]
    right, all_true = np.concatenate(hits), np.concatenate(wanted)
    if average == "micro":
        return float(ratio(2 * len(right), len(all_true) + len(right) + len(counted)))
    tp, true, fp = (np.bincount(part, minlength=count) for part in (right, all_true, counted))
    return float(np.where(true + fp, ratio(2 * tp, true + tp + fp), 1.0).mean())


def _read_sets(rows: Rows, options: MultilabelOptions) -> Cells:
    return predicted_cells(rows, missing=options.missing, numbers="refuse")


def _score_sets(rows: Rows, y_pred: Cells, options: MultilabelOptions) -> float:
    blocks = ((true, predicted) for _, true, predicted in in_blocks(true_cells(rows), y_pred))
    return f1_multilabel(blocks, unknown=options.unknown, average=options.average)


MULTILABEL = similarity("f1-multilabel", "F1 of sets of labels", _read_sets, _score_sets, options=MultilabelOptions)


class ProbabilisticF1Options(Options):
    """Options of the metric."""

    missing: Literal["refuse", "zero-score"] = "refuse"
    """`zero-score`: a missing prediction makes the score 0."""
    refuse_all_negative: bool = False
    """Whether predictions that are all below 0 are rejected instead of being clipped to 0."""


def probabilistic_f1(y_true: Array, y_prob: Array) -> float:
    """Return F1 with probabilities instead of counts (Yacouby & Axman 2020), each clipped to 0..1.

    Args:
        y_true: 0 and 1, shape (rows,).
        y_prob: Shape (rows,).

    Returns:
        0 to 1.
    """
    y_prob = np.clip(y_prob, 0, 1)
    hits, false = float(y_prob @ y_true), float(y_prob @ (1 - y_true))
    if not hits > 0:  # NaN too
        return 0.0
    precision, recall = hits / (hits + false), hits / float(y_true.sum())
    return 2 * precision * recall / (precision + recall) if precision > 0 else 0.0


def _read_probabilities(rows: Rows, options: ProbabilisticF1Options) -> Array:
    (target,) = rows.targets
    y_prob = numbers(rows.predicted(target), target, finite=False)
    if options.missing == "refuse":
        numbers(y_prob, target)
    if options.refuse_all_negative and len(y_prob) and (y_prob < 0).all():
        raise InvalidSubmission(f"Column {target!r} must have a probability above 0; all of its values are negative.")
    return y_prob


def _score_probabilities(rows: Rows, y_prob: Array, options: ProbabilisticF1Options) -> float:
    return probabilistic_f1(true_indicators(rows)[:, 0], y_prob)


PROBABILISTIC = similarity(
    "probabilistic-f1", "Probabilistic F1", _read_probabilities, _score_probabilities, options=ProbabilisticF1Options
)
