"""Rank-based, model-free association of two columns, in [0, 1]."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from mleredux_techniques._kit.data.dataset import Array, Dataset

FEWEST = 5
"""Minimum number of rows of a class, and of the others, for its separation."""


def ranks(values: Array) -> Array:
    """Return average ranks from 1; ties share their mid-rank."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values), dtype=float)


def skewness(values: Array) -> float:
    """Return the third standardized moment; 0 for constants. It has the same bits with all versions of NumPy, whose
    powers differ."""
    return float(((z := (values - values.mean()) / (values.std() or 1.0)) * z * z).mean()) if len(values) else 0.0


def separation(ranked: Array, positive: Array, fewest: int = 1) -> float:
    """Return |2 AUC - 1| of ranks that separate two classes; 0 if either has fewer rows than the given number."""
    count, others = int(positive.sum()), int((~positive).sum())
    if min(count, others) < fewest:
        return 0.0
    auc = (ranked[positive].sum() - count * (count + 1) / 2) / (count * others)
    return float(abs(2 * auc - 1))


def spearman(values: Array, others: Array) -> float:
    """Return |Spearman's rank correlation|; 0 if either input is constant."""
    a, b = ranks(values), ranks(others)
    return float(abs(np.corrcoef(a, b)[0, 1])) if np.ptp(a) and np.ptp(b) else 0.0


def copies(names: Sequence[str], related: Array, bound: float, band: float) -> tuple[list[list[str]], list[list[str]]]:
    """Return the pairs whose correlation is above a bound, and those within a band around it.

    Args:
        related: The correlations, of shape (names, names).
    """
    places = itertools.combinations(range(len(names)), 2)
    pairs = [(related[a, b], sorted([names[a], names[b]])) for a, b in places]
    unsure = [pair for value, pair in pairs if abs(value - bound) <= band]
    return [pair for value, pair in pairs if value > bound + band], unsure


def strength(values: Array, dataset: Dataset) -> float:
    """Return how well the values alone (one per training row, NaN if missing) predict the target, in [0, 1].

    This is |Spearman's correlation| for numeric targets; for classes, the largest one-vs-rest |2 AUC - 1| among classes
    with at least five rows. Rows with missing values are omitted.
    """
    known = ~np.isnan(values)
    target = dataset.train[dataset.target].to_numpy()[known]
    values = values[known]
    if len(values) < 10:
        return 0.0
    if dataset.problem == "regression":
        return spearman(values, target.astype(float))
    ranked, classes = ranks(values), target.astype(str)
    return max(separation(ranked, classes == name, FEWEST) for name in np.unique(classes))


def strengths(dataset: Dataset) -> dict[str, float]:
    """Return the `strength` of every numeric and boolean column, including ids, in descending order."""
    by_name = {
        name: round(strength(dataset.train[name].to_numpy(dtype=float), dataset), 6)
        for name in (*dataset.ids, *dataset.features)
        if dataset.kinds[name] != "text"
    }
    return dict(sorted(by_name.items(), key=lambda item: (-item[1], item[0])))
