"""Distances of features between the tables; drifting features that are predictive of the target are left out."""

from __future__ import annotations

from typing import Any

import pandas as pd
from scipy.stats import ks_2samp

from mleredux_agent_analyst.answers.leakage import strength, suspects_of
from mleredux_agent_analyst.relations import lost
from mleredux_agent_analyst.tables import Tables

DRIFTS, TELLS = 0.1, 0.2
MOST_VALUES = 50


def analyse(tables: Tables) -> dict[str, Any]:
    """Return the document; the target and relations are assumed to be unchanged in the test set."""
    features = []
    test = tables.train.head(0) if tables.test is None else tables.test
    gone = {*lost(tables), *suspects_of(tables)} if tables.thorough else None
    for name in tables.features:
        distance = _distance(tables.train[name], test[name], tables.kinds[name])
        if distance is not None:
            drifts = tables.kinds[name] == "number" and distance > DRIFTS
            tells = drifts and strength(tables, tables.train[name].to_numpy(dtype=float)) > TELLS
            features.append({"column": name, "distance": distance, "broken": tells if gone is None else name in gone})
    mean, shares = tables.train[tables.target].mean, tables.labels.value_counts
    return {
        "features": features,
        "target": shares(normalize=True).to_dict() if tables.classes else float(mean()),
        "changes": None,
        "drop": [feature["column"] for feature in features if feature["broken"]],
        "weights": "none",
        "recent": 1.0,
    }


def _distance(train: pd.Series[Any], test: pd.Series[Any], kind: str) -> float | None:
    if kind == "number":
        return float(ks_2samp(train.dropna(), test.dropna()).statistic)
    if train.nunique() > MOST_VALUES:
        return None
    ours, theirs = (values.fillna("").astype(str).value_counts(normalize=True) for values in (train, test))
    return float(ours.sub(theirs, fill_value=0).abs().sum() / 2)
