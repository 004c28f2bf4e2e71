"""Feature types inferred from values, and encodings chosen by type and cardinality."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression
from scipy.stats import kruskal

from mleredux_agent_analyst.tables import Tables, is_date

SCALES = (
    ("very low", "low", "medium", "high", "very high"),
    ("small", "medium", "large"),
    ("bad", "poor", "fair", "average", "good", "very good", "excellent"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("beginner", "intermediate", "advanced", "expert"),
)
FEW = 10
UNIQUE = 0.9
LEVELS, ROWS_A_LEVEL = (7, 15), 5
"""Numbers of values whose order can be judged, and the minimum number of rows of each."""
RELATED, MONOTONE = 1e-4, 0.95
"""Maximum p-value of a relation with the target, and the minimum share of the variance of the mean targets that a
monotone function of the values explains."""


def analyse(tables: Tables) -> dict[str, Any]:
    """Return the document: one-hot up to ten values, target encoding above; ordinal scales in order; text by words.

    A thorough analysis also tells codes from ordered values by the mean target of each value.
    """
    features = []
    for name in tables.features:
        values = tables.train[name].dropna()
        kind, encoding = _type(values, tables.kinds[name])
        if tables.thorough and kind in ("numeric", "nominal"):
            ordered = _ordered(tables, values)
            if ordered is not None:
                kind = ("nominal", "ordinal" if kind == "nominal" else "numeric")[ordered]
                encoding = {"name": "none" if kind == "numeric" else "OneHotEncoder"}
        if kind != "numeric":
            features.append({"column": name, "type": kind, "cardinality": int(values.nunique()), "encoding": encoding})
    return {"features": features}


def _ordered(tables: Tables, values: pd.Series[Any]) -> bool | None:
    """Return whether the mean target rises or falls with a column's few values; None if it does not depend on them."""
    values = values[values.groupby(values).transform("size") >= ROWS_A_LEVEL]
    fractions = pd.api.types.is_numeric_dtype(values) and (values % 1 != 0).any()
    if fractions or not LEVELS[0] <= values.nunique() <= LEVELS[1]:
        return None
    signals = pd.get_dummies(tables.labels, dtype=float) if tables.classes else tables.train[[tables.target]]
    shares = []
    for name in signals:
        by_value = signals[name][values.index].groupby(values)
        if kruskal(*(rows for _, rows in by_value)).pvalue < RELATED:
            means, sizes = by_value.mean().to_numpy(), by_value.size().to_numpy()
            fits = (isotonic_regression(means, weights=sizes, increasing=rises).x for rises in (True, False))
            shares += [np.average((fit - means.mean()) ** 2, weights=sizes) / means.var() for fit in fits]
    return bool(max(shares) >= MONOTONE) if shares else None


def _type(values: pd.Series[Any], kind: str) -> tuple[str, dict[str, Any]]:
    distinct = values.nunique()
    if distinct <= 1:
        return "constant", {"name": "drop"}
    if kind == "text" and is_date(values):
        return "datetime", {"name": "DatetimeEncoder"}
    if distinct == 2:
        return "binary", {"name": "none"} if kind != "text" else {"name": "OrdinalEncoder"}
    if kind == "number":
        return "numeric", {"name": "none"}
    texts = values.astype(str)
    if distinct > 0.5 * len(values) and texts.head(2_000).str.count(r"\s").mean() >= 4:
        return "text", {"name": "TfidfVectorizer", "max_features": 300}
    if distinct >= UNIQUE * len(values):
        return "identifier", {"name": "drop"}
    words = {text.strip().lower() for text in texts.unique()[:100]}
    for scale in SCALES:
        if words <= set(scale):
            order = sorted(texts.unique(), key=lambda text: scale.index(text.strip().lower()))
            return "ordinal", {"name": "OrdinalEncoder", "categories": order}
    return "nominal", {"name": "OneHotEncoder"} if distinct <= FEW else {"name": "TargetEncoder"}
