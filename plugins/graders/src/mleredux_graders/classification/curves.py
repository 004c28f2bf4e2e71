"""Areas under curves over all thresholds: ROC AUC, plain, weighted and of subgroups, and average precision."""

from __future__ import annotations

from typing import Literal

import numpy as np
from mleredux.errors import InvalidSubmission
from mleredux.plugin.grader import Score
from mleredux_tables import Array, Options, Rows, Table, numbers

from mleredux_graders.classification.scores import ScoreOptions, read_scores, true_indicators
from mleredux_graders.directions import similarity


class RocAucOptions(ScoreOptions):
    """Options of ROC AUC."""

    average: Literal["macro", "weighted"] = "macro"
    """Averaging over target columns; `weighted` uses the number of positive rows of each."""
    drop_negative_truth: bool = False
    """Whether rows whose truth sums to less than 0 are not scored (-1 marks them)."""


def roc_auc(y_true: Array, y_score: Array, *, sample_weight: Array | None = None) -> float:
    """Return the probability that a positive row scores higher than a negative one, with ties counted half.

    Args:
        y_true: 0 and 1, shape (rows,).
        y_score: Shape (rows,).
        sample_weight: Shape (rows,).

    Returns:
        0 to 1; NaN if one class is missing.
    """
    weight = np.ones(len(y_true)) if sample_weight is None else sample_weight
    order = np.argsort(y_score)
    scores, positive = y_score[order], (weight * y_true)[order]
    negative = weight[order] - positive
    ends = np.flatnonzero(np.append(scores[1:] != scores[:-1], True)) if len(scores) else np.empty(0, np.intp)
    positives, negatives = np.cumsum(positive)[ends], np.cumsum(negative)[ends]
    if not len(ends) or positives[-1] <= 0 or negatives[-1] <= 0:
        return float("nan")
    own = np.diff(positives, prepend=0)
    below = np.concatenate([[0], negatives[:-1]])
    return float((own * (below + np.diff(negatives, prepend=0) / 2)).sum() / (positives[-1] * negatives[-1]))


def _drop(answers: Table, options: RocAucOptions, truth: tuple[str, ...]) -> Array | None:
    if not options.drop_negative_truth:
        return None
    dropped: Array = np.column_stack([answers[name] for name in truth]).sum(axis=1) < 0
    return dropped


def _roc_auc(rows: Rows, y_score: Array, options: RocAucOptions) -> Score:
    y_true = true_indicators(rows)
    areas = [roc_auc(y_true[:, i], y_score[:, i], sample_weight=rows.weight) for i in range(y_true.shape[1])]
    weights = y_true.sum(axis=0) if options.average == "weighted" else None
    details = {"columns": dict(zip(rows.targets, areas, strict=True))} if len(areas) > 1 else {}
    return Score(value=float(np.average(areas, weights=weights)), details=details)


ROC_AUC = similarity("roc-auc", "Area under the ROC curve", read_scores, _roc_auc, options=RocAucOptions, drop=_drop)


class WeightedAucOptions(ScoreOptions):
    """Options of the metric. The default is that of steganalysis, where low false alarm rates count most."""

    slices: tuple[float, ...] = (0.0, 0.4, 1.0)
    """Bounds of the slices, in ascending order."""
    weights: tuple[float, ...] = (2.0, 1.0)
    """One weight per slice."""


def roc_curve(y_true: Array, y_score: Array) -> tuple[Array, Array]:
    """Return false and true positive rates at each distinct score, from (0, 0) to (1, 1).

    Args:
        y_true: 0 and 1, shape (rows,).
        y_score: Shape (rows,).

    Returns:
        Two arrays, shape (points,).
    """
    order = np.argsort(-y_score)
    scores, positive = y_score[order], y_true[order]
    ends = np.flatnonzero(np.append(scores[1:] != scores[:-1], True))
    hits = np.concatenate([[0], np.cumsum(positive)[ends]])
    false = np.concatenate([[0], np.cumsum(1 - positive)[ends]])
    return false / false[-1], hits / hits[-1]


def weighted_roc_auc(y_true: Array, y_score: Array, slices: tuple[float, ...], weights: tuple[float, ...]) -> float:
    """Return the weighted sum of the areas in the slices, divided by that of a perfect curve.

    Returns:
        0 to 1; NaN if one class is missing.
    """
    false, true = roc_curve(y_true, y_score)
    if not np.isfinite(false[-1]) or not np.isfinite(true[-1]):
        return float("nan")
    # add points where the curve crosses a bound, so that the area of a slice is a sum of trapezoids
    for bound in slices[1:-1]:
        if bound not in true:
            after = int(np.searchsorted(true, bound))
            share = (bound - true[after - 1]) / (true[after] - true[after - 1])
            crossing = false[after - 1] + share * (false[after] - false[after - 1])
            false, true = np.insert(false, after, crossing), np.insert(true, after, bound)
    total = 0.0
    for low, high, weight in zip(slices[:-1], slices[1:], weights, strict=True):
        heights = np.clip(true, low, high) - low
        total += weight * float((np.diff(false) * (heights[1:] + heights[:-1]) / 2).sum())
    return total / sum(w * (b - a) for a, b, w in zip(slices[:-1], slices[1:], weights, strict=True))


def _weighted_roc_auc(rows: Rows, y_score: Array, options: WeightedAucOptions) -> float:
    return weighted_roc_auc(true_indicators(rows)[:, 0], y_score[:, 0], options.slices, options.weights)


WEIGHTED_ROC_AUC = similarity(
    "weighted-roc-auc", "Weighted area under the ROC curve", read_scores, _weighted_roc_auc, options=WeightedAucOptions
)


class BiasOptions(Options):
    """Options of the metric."""

    identities: tuple[str, ...]
    """Columns of the answers with the degree to which a row belongs to a subgroup."""
    threshold: float = 0.5
    """Threshold at or above which a row is positive, or a member of a subgroup."""
    binarize: bool = False
    """Quirk of jigsaw-unintended-bias: predictions are binarized at the threshold before computing any AUC."""
    power: float = -5.0
    weight_of_each: float = 0.25

    def answer_columns(self) -> tuple[str, ...]:
        """Return the columns that the options name."""
        return (*super().answer_columns(), *self.identities)


def power_mean(values: Array, power: float) -> float:
    """Return the generalized mean (Hölder).

    Raises:
        InvalidSubmission: The mean is undefined: a value is 0 and the power is negative.
    """
    if power < 0 and (values == 0).any():
        raise InvalidSubmission("The score is undefined: all pairs of rows of a subgroup are ranked wrongly.")
    return float(np.mean(values**power) ** (1 / power))


def _read(rows: Rows, options: BiasOptions) -> Array:
    (target,) = rows.targets
    y_score = numbers(rows.predicted(target), target, finite=not options.binarize)
    return (y_score >= options.threshold).astype(np.float64) if options.binarize else y_score


def _bias_roc_auc(rows: Rows, y_score: Array, options: BiasOptions) -> Score:
    (truth,) = rows.truth

    def positive(column: str) -> Array:
        above: Array = numbers(rows.true(column), column, finite=False) >= options.threshold
        return above

    y_true = positive(truth)

    def area(chosen: Array) -> float:
        return roc_auc(y_true[chosen].astype(np.float64), y_score[chosen])

    parts: dict[str, list[float]] = {"subgroup": [], "bpsn": [], "bnsp": []}
    for identity in options.identities:
        member = positive(identity)
        parts["subgroup"].append(area(member))
        parts["bpsn"].append(area(y_true != member))
        parts["bnsp"].append(area(y_true == member))
    overall = area(np.ones(len(y_true), dtype=bool))
    means = {name: power_mean(np.array(values), options.power) for name, values in parts.items()}
    value = options.weight_of_each * (overall + sum(means.values()))
    return Score(value=value, details={"overall": overall, **means})


BIAS_ROC_AUC = similarity(
    "bias-roc-auc", "ROC AUC overall and within subgroups", _read, _bias_roc_auc, options=BiasOptions
)


def average_precision(y_true: Array, y_score: Array, *, sample_weight: Array | None = None) -> float:
    """Return the sum over distinct scores, from high to low, of the increase in recall times the precision.

    Args:
        y_true: 0 and 1, shape (rows,).
        y_score: Shape (rows,).

    Returns:
        0 to 1; 0 if there are no positive rows.
    """
    weight = np.ones(len(y_true)) if sample_weight is None else sample_weight
    order = np.argsort(-y_score)
    scores, positive = y_score[order], (weight * y_true)[order]
    ends = np.flatnonzero(np.append(scores[1:] != scores[:-1], True)) if len(scores) else np.empty(0, np.intp)
    hits, taken = np.cumsum(positive)[ends], np.cumsum(weight[order])[ends]
    if not len(ends) or hits[-1] <= 0:
        return 0.0
    return float((np.diff(hits, prepend=0) / hits[-1] * (hits / taken)).sum())


def _average_precision(rows: Rows, y_score: Array, options: ScoreOptions) -> float:
    y_true = true_indicators(rows)
    columns = range(y_true.shape[1])
    return float(np.mean([average_precision(y_true[:, i], y_score[:, i], sample_weight=rows.weight) for i in columns]))


AVERAGE_PRECISION = similarity(
    "average-precision", "Average precision", read_scores, _average_precision, options=ScoreOptions
)
