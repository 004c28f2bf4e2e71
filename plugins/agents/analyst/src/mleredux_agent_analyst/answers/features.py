"""Rank correlations of features with the target and each other; uncorrelated features are left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from mleredux_agent_analyst.answers.leakage import strength
from mleredux_agent_analyst.tables import Tables

ERRORS = 3.0
SAME = 0.95
SKEWED = 1.0


def analyse(tables: Tables) -> dict[str, Any]:
    """Return the document; relations that ranks miss, and pairs, are not searched for."""
    least = ERRORS / np.sqrt(len(tables.train))
    features = []
    for name in tables.features:
        text = tables.kinds[name] == "text"
        measured = 0.0 if text else strength(tables, tables.train[name].to_numpy(dtype=float))
        tells = text or bool(measured > least)
        features.append({"column": name, "strength": measured, "tells": "alone" if tells else "nothing", "keep": tells})
    numbers = tables.of_kind("number")
    near = tables.train[numbers].corr(method="spearman").abs().to_numpy()
    pairs = [[numbers[a], numbers[b]] for a, b in np.argwhere(np.triu(near, 1) > SAME)]
    skewness = None if tables.classes else float(tables.train[tables.target].skew())  # type: ignore[arg-type]
    return {
        "features": features,
        "pairs": [],
        "copies": pairs,
        "skewness": skewness,
        "transform": "log1p" if skewness is not None and skewness > SKEWED else "none",
    }
