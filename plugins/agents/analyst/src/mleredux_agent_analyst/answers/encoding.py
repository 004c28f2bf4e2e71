"""Feature types inferred from values, and encodings chosen by type and cardinality."""

from __future__ import annotations

from typing import Any

import pandas as pd

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


def analyse(tables: Tables) -> dict[str, Any]:
    """Return the document: one-hot up to ten values, target encoding above; ordinal scales in order; text by words."""
    features = []
    for name in tables.features:
        values = tables.train[name].dropna()
        kind, encoding = _type(values, tables.kinds[name])
        if kind != "numeric":
            features.append({"column": name, "type": kind, "cardinality": int(values.nunique()), "encoding": encoding})
    return {"features": features}


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
