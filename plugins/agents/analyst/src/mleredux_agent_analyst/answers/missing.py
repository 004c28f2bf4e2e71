"""Counts of missing values, columns that are missing together, and columns that predict missingness."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2_contingency, mannwhitneyu

from mleredux_agent_analyst.tables import Array, Tables

TELLING = 0.15
SURE = 1e-3
TOGETHER = 0.5
ROWS = 10_000
LEVELS = 50
FEWEST = 10
"""Fewer gaps support no mechanism."""
TRUNCATED = 0.75
"""Below this ratio of the two tails' lengths, the shorter tail is considered truncated."""
SHAPED, MARGIN, EVEN, LONG = 30, 0.05, (0.6, 1.2), 3.5
"""Minimum number of values; share of the rows next to the gaps that is not compared; accepted ratios of the halves'
widths; maximum ratio of the 98 % to the 75 % quantile, both from the median (3.0 for a normal distribution)."""


def analyse(tables: Tables) -> dict[str, Any]:
    """Return the document: missing values that another column predicts are MAR, truncated tails MNAR, others MCAR."""
    gaps = tables.train[tables.features].isna()
    counts = {name: int(count) for name, count in gaps.sum().items() if count}
    columns = [_column(tables, str(name), count, _predictors(tables, str(name))) for name, count in counts.items()]
    together = [
        {"columns": [str(a), str(b)], "rows": int((gaps[a] & gaps[b]).sum())}
        for a, b in itertools.islice(itertools.combinations(counts, 2), 5_000)
        if (gaps[a] & gaps[b]).sum() >= max(5, TOGETHER * (gaps[a] | gaps[b]).sum())
    ]
    return {"complete_rows": int((~gaps.any(axis=1)).sum()), "columns": columns, "together": together[:200]}


def _column(tables: Tables, name: str, count: int, telling: list[str]) -> dict[str, Any]:
    mechanism = "MAR" if telling else "MNAR" if count >= FEWEST and _cut_off(tables.train[name]) else "MCAR"
    if tables.kinds[name] == "text":
        imputation: dict[str, Any] = {"name": "SimpleImputer", "strategy": "constant"}
    elif mechanism != "MNAR" and tables.kinds[name] == "number" and _company(tables, name) > 0.5:
        imputation = {"name": "IterativeImputer", "add_indicator": mechanism == "MAR"}
    else:
        imputation = {"name": "SimpleImputer", "strategy": "median", "add_indicator": mechanism != "MCAR"}
    entry = {"column": name, "missing": count, "mechanism": mechanism}
    return {**entry, "depends_on": telling[:5], "imputation": imputation}


def _predictors(tables: Tables, column: str) -> list[str]:
    """Return the other columns that predict whether this one is missing, strongest first."""
    train = tables.train.head(ROWS)
    gap = train[column].isna().to_numpy()
    strengths: dict[str, float] = {}
    for other in tables.features:
        known = train[other].notna().to_numpy()
        hit, values = gap[known], train[other][known]
        if other == column or hit.sum() < FEWEST or (~hit).sum() < FEWEST:
            continue
        if tables.kinds[other] == "text":
            if not 2 <= values.nunique() <= LEVELS:
                continue
            table = pd.crosstab(hit, values).to_numpy()
            chi2, p, *_ = chi2_contingency(table, correction=False)
            strength = float(np.sqrt(chi2 / table.sum()))
        else:
            numbers = values.to_numpy(dtype=float)
            statistic, p = mannwhitneyu(numbers[hit], numbers[~hit])
            strength = abs(2 * float(statistic) / (hit.sum() * (~hit).sum()) - 1)
        if strength >= TELLING and float(p) * len(tables.features) < SURE:
            strengths[other] = strength
    return sorted(strengths, key=lambda name: -strengths[name])


def _cut_off(values: pd.Series[Any]) -> bool:
    """Return whether gaps may be the lost end of a bell curve: one tail is much shorter than the other, with the gaps
    there both halves are about equally wide, and the longer tail is not longer than that of a normal distribution.
    """
    if values.dtype.kind not in "if" or values.nunique() < SHAPED:
        return False
    known, rows = np.sort(values.dropna().to_numpy(dtype=float)), len(values)
    low, middle, high = np.quantile(known, [0.02, 0.5, 0.98])
    shorter, longer = sorted((middle - low, high - middle))
    lost = rows - len(known)
    edge = lost / rows + MARGIN
    if shorter >= TRUNCATED * longer or edge >= 0.5 - MARGIN:
        return False
    known = known if middle - low < high - middle else -known[::-1]
    near, half, far, quarter, end = (known[int(share * rows) - lost] for share in (edge, 0.5, 1 - edge, 0.75, 0.98))
    even = EVEN[0] * (half - near) < far - half < EVEN[1] * (half - near)
    return bool(even and end - half < LONG * (quarter - half))


def _company(tables: Tables, name: str) -> float:
    """Return the largest rank correlation with another numeric column."""
    numbers = tables.of_kind("number")
    ranks: Array = tables.train[numbers].head(2_000).rank().corr()[name].drop(name).abs().to_numpy()
    return float(np.nanmax(ranks)) if len(ranks) and not np.isnan(ranks).all() else 0.0
