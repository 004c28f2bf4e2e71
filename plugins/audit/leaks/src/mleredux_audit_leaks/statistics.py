"""Measures of how well data predicts the target, compared with random permutations of the target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mleredux_audit_leaks.report import Statistic

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Z = 6.0
"""Minimum number of standard deviations of the permutations; chance exceeds it once in 10^9 normally distributed
trials."""
PERMUTATIONS = 100
MOST_CLASSES = 40


@dataclass(frozen=True)
class Labels:
    """A target as numbers.

    Attributes:
        kind: `class` (codes), `number`, or `text` (nearly unique values, predicted only by copies).
        values: Values of shape (rows,); codes of classes as floats, the most frequent class first; NaN if unknown.
    """

    kind: str
    values: Floats

    def take(self, rows: Ints) -> Labels:
        """Return the labels of some rows."""
        return Labels(self.kind, self.values[rows])

    def shuffled(self, rng: np.random.Generator) -> Labels:
        """Return the labels in random order."""
        return Labels(self.kind, rng.permutation(self.values))

    def one_hot(self) -> Floats:
        """Return a one-hot encoding of shape (rows, classes), or numbers of shape (rows, 1); rare classes share the
        last column."""
        if self.kind == "number":
            return self.values[:, None]
        codes = np.minimum(self.values, MOST_CLASSES - 1).astype(int)
        hot = np.zeros((len(codes), int(codes.max(initial=0)) + 1))
        hot[np.arange(len(codes)), codes] = 1
        return hot


def skill(truth: Labels, predicted: Floats, known: Labels | None = None) -> float:
    """Return 1 for a perfect prediction and 0 for the best constant one, from accuracy for classes and R² for
    numbers.

    Args:
        known: The labels that predictions of classes are learned from, whose distribution may differ by chance.
    """
    y = truth.values
    if truth.kind == "number":
        spread = float(((y - y.mean()) ** 2).sum())
        return 1 - float(((y - predicted) ** 2).sum()) / spread if spread > 0 else 0.0
    share = float(np.bincount((known or truth).values.astype(int)).max()) / len((known or truth).values)
    return (float((np.minimum(y, MOST_CLASSES - 1) == predicted).mean()) - share) / (1 - share) if share < 1 else 0.0


def _decide(votes: Floats, weights: Floats, hot: Floats, kind: str) -> Floats:
    """Return predictions from summed votes; if votes tie or are absent, the most frequent class or the mean."""
    prior = hot.mean(axis=0)
    if kind == "number":
        return np.where(weights > 0, votes[:, 0] / np.maximum(weights, 1), prior[0])
    return np.asarray((votes + 1e-6 * prior).argmax(axis=1), dtype=float)


def neighbour_skill(labels: Labels, reach: int = 2) -> float:
    """Return the skill of predictions by the `reach` rows before and after each row."""
    hot = labels.one_hot()
    votes, weights = np.zeros(hot.shape), np.zeros(len(hot))
    for step in range(1, min(reach, len(hot) - 1) + 1):
        votes[step:] += hot[:-step]
        votes[:-step] += hot[step:]
        weights[step:] += 1
        weights[:-step] += 1
    return skill(labels, _decide(votes, weights, hot, labels.kind))


def lookup_skill(groups: Ints, labels: Labels) -> float:
    """Return the skill of predictions by other rows with the same value."""
    hot = labels.one_hot()
    size = int(groups.max(initial=-1)) + 1
    sums = np.stack([np.bincount(groups, weights=hot[:, place], minlength=size) for place in range(hot.shape[1])], 1)
    weights = np.asarray(np.bincount(groups, minlength=size)[groups] - 1, dtype=float)
    return skill(labels, _decide(sums[groups] - hot, weights, hot, labels.kind))


def transfer(known: Ints, known_labels: Labels, test_values: Ints) -> Floats:
    """Return predictions for groups from the labels of other rows in the same group; -1 means no group."""
    hot = known_labels.one_hot()
    size = int(max(known.max(initial=-1), test_values.max(initial=-1))) + 1
    present = known >= 0
    sums = np.stack(
        [np.bincount(known[present], weights=hot[present, place], minlength=size) for place in range(hot.shape[1])], 1
    )
    counts = np.bincount(known[present], minlength=size).astype(float)
    votes = np.asarray(sums[test_values] * (test_values >= 0)[:, None], dtype=float)
    weights = counts[test_values] * (test_values >= 0)
    return _decide(votes, weights, hot, known_labels.kind)


@dataclass(frozen=True)
class Judged:
    """A statistic, with its distribution under permuted targets."""

    value: float
    mean: float
    largest: float
    z: float

    @property
    def stands_out(self) -> bool:
        """Return whether the value exceeds those of all permutations by far."""
        return self.z >= Z and self.value > self.largest

    def statistic(self, name: str, threshold: float) -> Statistic:
        """Return the statistic for a finding."""
        return Statistic(name=name, value=self.value, baseline=self.mean, threshold=threshold, z=self.z)


def judge(measure: Callable[[Labels], float], labels: Labels, *, least: float, seed: int = 0) -> Judged | None:
    """Compare a measure with its values under permutations; return None if it is below `least` or does not stand
    out."""
    value = measure(labels)
    if not value >= least:
        return None
    rng = np.random.default_rng(seed)
    permuted = np.array([measure(labels.shuffled(rng)) for _ in range(PERMUTATIONS)])
    z = (value - permuted.mean()) / max(float(permuted.std()), 0.01)
    judged = Judged(value, float(permuted.mean()), float(permuted.max()), float(z))
    return judged if judged.stands_out else None


def column_skill(column: pd.Series, labels: Labels, *, least: float, seed: int = 0) -> Judged | None:
    """Measure how well a column predicts the target of the same rows: by equal values and, for numbers, by near
    ones."""
    numbers = as_numbers(column)
    codes = pd.factorize(column)[0].astype(np.int64)
    codes = np.where(codes < 0, codes.max(initial=-1) + 1, codes)
    distinct = int(codes.max(initial=0)) + 1
    judgments = []
    if distinct < 2:
        return None
    if distinct <= len(codes) * 0.7:
        judgments.append(judge(lambda y: lookup_skill(codes, y), labels, least=least, seed=seed))
    if numbers is not None and distinct > 2:
        ties = np.random.default_rng(seed).random(len(numbers))
        order = np.lexsort((ties, numbers))
        judgments.append(judge(lambda y: neighbour_skill(y), labels.take(order), least=least, seed=seed))
    return max((judgment for judgment in judgments if judgment), key=lambda judgment: judgment.value, default=None)


def as_numbers(column: pd.Series) -> Floats | None:
    """Return a column as numbers, with blanks as the largest value; None if it is not numeric."""
    numbers = np.asarray(pd.to_numeric(column, errors="coerce"), dtype=float)
    filled = (column.astype(str).str.strip() != "").to_numpy() & column.notna().to_numpy()
    if not filled.any() or np.isnan(numbers[filled]).mean() > 0.02:
        return None
    return np.where(np.isfinite(numbers), numbers, np.finfo(float).max)


def log10_arrangements(labels: Labels) -> float:
    """Return the decimal logarithm of the number of arrangements of the labels, which measures how unlikely a chance
    match is."""
    if labels.kind == "class":
        counts = np.bincount(labels.values.astype(int))
    else:
        counts = np.unique(labels.values, return_counts=True)[1]
    return (math.lgamma(len(labels.values) + 1) - sum(math.lgamma(count + 1) for count in counts)) / math.log(10)
