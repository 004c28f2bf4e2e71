"""How much one column tells of another: rank measures in [0, 1] that need no model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mleredux_techniques._kit.dataset import Dataset

if TYPE_CHECKING:
    import pandas as pd

Array = np.ndarray[Any, Any]
MAX_CLASSES = 100
_LEVELS = 50


def ranks(values: Array) -> Array:
    """Mid-ranks from 1, ties shared."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values), dtype=float)


def separation(values: Array, positive: Array) -> float:
    """|2 AUC - 1| of telling positive rows from the others by the values; 0 where there are none of either."""
    count = int(positive.sum())
    others = len(values) - count
    if not count or not others:
        return 0.0
    auc = (ranks(values)[positive].sum() - count * (count + 1) / 2) / (count * others)
    return float(abs(2 * auc - 1))


def spearman(values: Array, others: Array) -> float:
    """|Spearman's rank correlation|; 0 where either is constant."""
    a, b = ranks(values), ranks(others)
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(abs(a @ b) / scale) if scale else 0.0


def strength(values: Array, dataset: Dataset) -> float:
    """How well the values (one a training row, NaN where missing) alone tell the target, in [0, 1].

    For numeric targets |Spearman's correlation|, for classes the largest |2 AUC - 1| of one class against the rest,
    among classes of at least five rows; rows with missing values are left out.
    """
    known = ~np.isnan(values)
    target = dataset.train[dataset.target].to_numpy()[known]
    values = values[known]
    if len(values) < 10:
        return 0.0
    if dataset.problem == "regression":
        return spearman(values, target.astype(float))
    names, codes = np.unique(target.astype(str), return_inverse=True)
    sizes = np.bincount(codes, minlength=len(names))
    ranked = ranks(values)
    sums = np.bincount(codes, weights=ranked, minlength=len(names))
    others = len(values) - sizes
    usable = (sizes >= 5) & (others >= 5)
    if not usable.any():
        return 0.0
    auc = (sums - sizes * (sizes + 1) / 2)[usable] / (sizes * others)[usable]
    return float(np.abs(2 * auc - 1).max())


def strengths(dataset: Dataset) -> dict[str, float]:
    """`strength` of every numeric and boolean column, ids included, strongest first."""
    found = {
        name: round(strength(dataset.train[name].to_numpy(dtype=float), dataset), 6)
        for name in (*dataset.ids, *dataset.features)
        if dataset.kinds[name] != "text"
    }
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def tells_of(indicator: Array, values: pd.Series[Any], kind: str) -> tuple[float, float]:
    """How much a column tells of a yes-or-no, and how surely.

    Args:
        indicator: Booleans, one a row.
        values: The column.
        kind: Its kind.

    Returns:
        Strength in [0, 1] (|2 AUC - 1|, for texts Cramér's V), and the p-value of there being nothing.
    """
    from scipy.stats import chi2_contingency, mannwhitneyu

    known = values.notna().to_numpy()
    hit, held = indicator[known], values[known]
    if hit.sum() < 10 or (~hit).sum() < 10:
        return 0.0, 1.0
    if kind != "text":
        numbers = held.to_numpy(dtype=float)
        return separation(numbers, hit), float(mannwhitneyu(numbers[hit], numbers[~hit]).pvalue)
    import pandas as pd

    if held.nunique() > _LEVELS or held.nunique() < 2:
        return 0.0, 1.0
    counts = pd.crosstab(hit, held).to_numpy()
    chi2, p, *_ = chi2_contingency(counts, correction=False)
    return float(np.sqrt(chi2 / counts.sum())), float(p)
