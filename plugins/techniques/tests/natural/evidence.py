"""Statistical tests behind the claims of the sheets, written from textbooks and from the public descriptions alone."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

Series = pd.Series
Frame = pd.DataFrame


def is_number(column: Series) -> bool:
    """Whether a column holds numbers; true and false are none."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def targets(target: Series) -> np.ndarray[Any, Any]:
    """The target as columns of numbers: ranks of a number, one indicator per class."""
    if is_number(target) and target.nunique() > 20:
        return target.rank(pct=True).to_numpy()[:, None]
    return np.stack([(target == value).to_numpy(float) for value in sorted(target.unique())], axis=1)


def codes(column: Series, bins: int = 12) -> np.ndarray[Any, Any]:
    """Values as whole numbers: ranges of numbers with many values, else each value; gaps are -1."""
    if is_number(column) and column.nunique() > bins:
        return pd.qcut(column, bins, labels=False, duplicates="drop").fillna(-1).to_numpy(int)
    return pd.factorize(column.astype(object).where(column.notna(), None))[0]


def out_of_fold(cell: np.ndarray[Any, Any], y: np.ndarray[Any, Any], groups: Series | None = None) -> float:
    """Correlation of the target with its mean by cell in the other folds, the best of its columns."""
    unit = np.arange(len(cell)) if groups is None else pd.factorize(groups)[0]
    order = np.random.default_rng(0).permutation(unit.max() + 1)
    best = -1.0
    for k in range(y.shape[1]):
        told = np.empty(len(cell))
        for train, _test in KFold(5).split(order):
            inside = np.isin(unit, order[train])
            sums = pd.Series(y[inside, k]).groupby(cell[inside]).agg(["sum", "count"])
            mean = y[inside, k].mean()
            smooth = (sums["sum"] + 3 * mean) / (sums["count"] + 3)
            told[~inside] = pd.Series(cell[~inside]).map(smooth).fillna(mean)
        if told.std() > 0 and y[:, k].std() > 0:
            best = max(best, float(np.corrcoef(told, y[:, k])[0, 1]))
    return best


def skill(column: Series, target: Series, groups: Series | None = None) -> float:
    """How much one column tells of the target, out of fold: a correlation."""
    return out_of_fold(codes(column), targets(target), groups)


def pair_skill(first: Series, second: Series, target: Series, groups: Series | None = None) -> float:
    """The same of two columns together, in a grid of six ranges each."""
    cell = codes(first, 6) * 1000 + codes(second, 6)
    return out_of_fold(cell, targets(target), groups)


def strength(column: Series, target: Series) -> float:
    """|Spearman's correlation|, or the largest |2 AUC - 1| of one class against the rest."""
    if not (is_number(column) or pd.api.types.is_bool_dtype(column)):
        return 0.0
    known = column.notna() & target.notna()
    x, y = column[known].astype(float), target[known]
    if x.nunique() < 2:
        return 0.0
    if is_number(target) and target.nunique() > 20:
        return abs(float(stats.spearmanr(x, y).statistic))
    classes = [value for value, count in y.value_counts().items() if count >= 5]
    return max((abs(2 * roc_auc_score(y == value, x) - 1) for value in classes if (y != value).any()), default=0.0)


def copies(table: Frame, features: list[str], bound: float) -> list[tuple[str, str, float]]:
    """Pairs of numbers with a rank correlation beyond a bound."""
    numbers = [name for name in features if is_number(table[name]) and table[name].nunique() > 2]
    ranks = table[numbers].corr(method="spearman").abs() if numbers else Frame()
    return [(a, b, round(float(ranks.loc[a, b]), 3)) for a, b in combinations(numbers, 2) if ranks.loc[a, b] > bound]


def distance(train: Series, test: Series) -> float:
    """Kolmogorov-Smirnov of numbers; total variation of others, whose gaps are a value."""
    if is_number(train):
        return float(stats.ks_2samp(train.dropna(), test.dropna()).statistic)
    shares = [part.astype(object).fillna("gap").value_counts(normalize=True) for part in (train, test)]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)


def together(table: Frame, features: list[str]) -> list[tuple[str, str, int]]:
    """Pairs that are both missing in at least half of the rows in which either is."""
    gaps = table[features].isna()
    lacking = [name for name in features if gaps[name].any()]
    both = [(a, b, int((gaps[a] & gaps[b]).sum()), int((gaps[a] | gaps[b]).sum())) for a, b in combinations(lacking, 2)]
    return [(a, b, count) for a, b, count, either in both if count >= either / 2]


def gap_drivers(table: Frame, column: str, others: list[str]) -> list[tuple[str, float]]:
    """How well each other column predicts whether a value is missing, best first."""
    gap = table[column].isna().to_numpy(float)[:, None]
    return sorted(
        ((name, round(out_of_fold(codes(table[name], 16), gap), 3)) for name in others if name != column),
        key=lambda item: -item[1],
    )


def chi_squared(first: Series, second: Series) -> float:
    """P-value of independence of two columns of few values (numbers in ten ranges)."""
    return float(stats.chi2_contingency(pd.crosstab(codes(first, 10), codes(second, 10))).pvalue)
