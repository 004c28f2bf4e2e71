"""Column contents and relations, by rules of thumb: common sentinels, rank correlations, equal distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp

from mleredux_agent_analyst.answers.leakage import strength
from mleredux_agent_analyst.tables import Tables, is_date

MARKS = (-1.0, -99.0, -999.0, -9999.0, 99.0, 999.0, 9999.0)
AMOUNT = r"^[$€£]?[-+]?[\d,]+(?:\.\d+)?\s*[A-Za-z%]*$"
RELATED, ALIKE, DISTANT = 0.2, 0.9, 0.1
TELLING = 0.15
"""Minimum correlation of the target with its mean over the other rows that have the same value of a category."""


def analyse(tables: Tables) -> dict[str, Any]:
    """Return the document: common sentinels count as missing values, and numbers have monotone relations."""
    numbers = [name for name in tables.of_kind("number") if tables.train[name].nunique() > 1]
    related = tables.train[numbers].corr(method="spearman").abs()
    columns = []
    for name in tables.features:
        values = tables.train[name]
        column = {"column": name, "type": _type(values, tables.kinds[name]), "distinct": int(values.nunique())}
        column["actions"] = ["to_number"] if column["type"] == "number_as_text" else []
        if name in numbers:
            held = values.to_numpy(dtype=float)
            for end in (float(np.nanmin(held)), float(np.nanmax(held))):
                if end in MARKS and (held == end).sum() > 4:
                    column |= {"sentinel": end, "actions": ["mark_missing"]}
            column["relation"] = "monotone" if strength(tables, held) > RELATED else "none"
            others = related[name].drop(name)
            column["like"] = str(others.idxmax()) if others.max() > ALIKE else None
            if tables.test is not None and name in tables.test:
                apart = ks_2samp(values.dropna(), tables.test[name].dropna())
                column["drift"] = float(apart.statistic) if apart.statistic > DISTANT and apart.pvalue < 0.001 else None
        elif column["type"] == "category":
            target = pd.get_dummies(tables.labels, dtype=float) if tables.classes else tables.train[[tables.target]]
            alike = target.groupby(values.to_numpy(), dropna=False)
            means = (alike.transform("sum") - target).div(alike.transform("size") - 1, axis=0)
            column["relation"] = "values" if means.corrwith(target).max() > TELLING else "none"
        columns.append(column)
    return {"columns": columns}


def _type(values: pd.Series[Any], kind: str) -> str:
    known = values.dropna().astype(str)
    if values.nunique() <= 1:
        return "constant"
    if kind != "text":
        return kind
    if is_date(values):
        return "date"
    if known.str.contains(AMOUNT, regex=True).mean() > 0.95 and known.nunique() >= 10:
        return "number_as_text"
    return "text" if known.nunique() > 0.5 * len(known) and known.str.count(r"\s").mean() >= 4 else "category"
