"""Columns or row orders that reveal the target, and rows that occur in both training and test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from mleredux_agent_analyst.relations import lost
from mleredux_agent_analyst.tables import Array, Tables, duplicates

COPY = 0.995
ORDER = 0.3
MOSTLY_ONE_VALUE = 0.5
"""A strong column is suspected if its test distribution differs, or if it stands out by this much."""
STRONG = 0.6
STANDS_OUT = 0.12
SHARED = 0.02


def analyse(tables: Tables) -> dict[str, Any]:
    """Return the document: a copy is detected by its strength, a noisy one by its lead over all other columns.

    A thorough answer adds columns that lose their relation with all other columns in the test set.
    """
    repeated, shared = duplicates(tables)
    strengths = strengths_of(tables, *tables.ids, *tables.features)
    order = sorted(strengths, key=lambda name: (-strengths[name], name))
    suspects = suspects_of(tables)
    risks = [_risk(name, kind, strengths[name]) for name, kind in suspects.items()]
    if tables.thorough:
        absent = {name: share for name, share in lost(tables).items() if name not in suspects}
        risks += [_risk(name, _kind(tables.train[name]), strengths.get(name, share)) for name, share in absent.items()]
    rows = strength(tables, np.arange(len(tables.train), dtype=float))
    ids = [name for name in tables.ids if strengths.get(name, 0.0) >= ORDER]
    risks += [_risk(name, "id_order", strengths[name]) for name in ids]
    if rows >= ORDER and not ids:
        risks.append({"kind": "id_order", "columns": [], "strength": rows, "mitigation": {"name": "none"}})
    test_rows = 0 if tables.test is None else len(tables.test)
    if test_rows and shared > SHARED * test_rows:
        risk = {"kind": "duplicate_rows", "columns": [], "strength": shared / test_rows}
        risks.append({**risk, "mitigation": {"name": "drop_duplicates"}})
    return {
        "duplicate_rows": repeated,
        "shared_rows": shared,
        "feature_strengths": [{"column": name, "strength": strengths[name]} for name in order[:5]],
        "risks": risks,
    }


def _risk(name: str, kind: str, strength: float) -> dict[str, Any]:
    return {"kind": kind, "columns": [name], "strength": strength, "mitigation": {"name": "drop_columns"}}


def suspects_of(tables: Tables) -> dict[str, str]:
    """Return the features that predict the target so well that they must be derived from it, and the kind of leak."""
    kinds, strengths = dict[str, str](), strengths_of(tables, *tables.features)
    for name in strengths:
        others = [strengths[other] for other in strengths if other != name]
        values = tables.train[name].dropna()
        if strengths[name] >= COPY:
            kinds[name] = "copy"
        elif strengths[name] >= STRONG and strengths[name] > max(others, default=0.0) + STANDS_OUT:
            zeros = bool(len(values)) and float((values == values.mode().iloc[0]).mean()) > MOSTLY_ONE_VALUE
            kinds[name] = "future_value" if zeros else _kind(values)
    return kinds


def _kind(values: pd.Series[Any]) -> str:
    """Return the kind of leak, judged by whether values repeat: means by category do; a copy with noise does not."""
    return "target_encoding" if values.nunique() < 0.5 * len(values) else "noisy_copy"


def strengths_of(tables: Tables, *names: str) -> dict[str, float]:
    """Return the strength of each of these columns, except texts."""
    kept = [name for name in names if tables.kinds[name] != "text"]
    return {name: strength(tables, tables.train[name].to_numpy(dtype=float)) for name in kept}


def strength(tables: Tables, values: Array) -> float:
    """Return |Spearman's correlation| with a numeric target; for classes, the largest one-vs-rest |2 AUC - 1|."""
    known = ~np.isnan(values)
    if known.sum() < 10:
        return 0.0
    if not tables.classes:
        both = pd.DataFrame({"values": values, "target": tables.train[tables.target]})[known].corr("spearman")
        return min(1.0, float(both.abs().fillna(0.0).to_numpy()[0, 1]))
    ranks, labels = rankdata(values[known]), tables.labels.to_numpy(dtype=str)[known]
    hits = [hit for label in np.unique(labels) if min((hit := labels == label).sum(), (~hit).sum()) >= 5]
    # how far the mean rank is from the middle
    apart = [abs(2 * float(ranks[hit].mean() - ranks.mean())) / int((~hit).sum()) for hit in hits]
    return min(1.0, max(apart, default=0.0))
