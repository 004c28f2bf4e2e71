"""Answer documents from the claims of a sheet: counts come from the public tables, judgements from the sheet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from natural import evidence
from natural.data import Data, plain
from natural.evidence import is_number

Document = dict[str, Any]


def imbalance(data: Data, claim: list[str]) -> Document:
    """Claim: the strategies, best first."""
    counts = {plain(value): int(count) for value, count in data.y.value_counts().items()}
    most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
    ratio = counts[most] / counts[least]
    return {
        "target": data.target,
        "class_counts": counts,
        "majority_class": most,
        "minority_class": least,
        "imbalance_ratio": ratio,
        "severity": severity(ratio),
        "strategies": [{"name": name} for name in claim],
    }


def severity(ratio: float) -> str:
    """The word for a ratio."""
    return ("balanced", "mild", "moderate", "severe", "extreme")[int(np.digitize(ratio, [1.5, 3, 10, 100]))]


def missing(data: Data, claim: dict[str, tuple[str, list[str], Any]]) -> Document:
    """Claim: by column the mechanism, what it depends on, and the imputation."""
    gaps = data.train[data.features].isna()
    return {
        "complete_rows": int((~gaps.any(axis=1)).sum()),
        "columns": [
            {
                "column": name,
                "missing": int(gaps[name].sum()),
                "mechanism": claim[name][0],
                "depends_on": claim[name][1],
                "imputation": claim[name][2],
            }
            for name in data.lacking
        ],
        "together": [{"columns": [a, b], "rows": rows} for a, b, rows in evidence.together(data.train, data.features)],
    }


def encoding(data: Data, claim: dict[str, tuple[str, Any]]) -> Document:
    """Claim: by column the type and the encoding."""
    return {
        "features": [
            {"column": name, "type": kind, "cardinality": int(data.train[name].nunique()), "encoding": how}
            for name, (kind, how) in claim.items()
        ]
    }


def eda(data: Data, claim: dict[str, Any]) -> Document:
    """Claim: `types` that dtypes don't show, `relations`, `sentinels`, `actions` by column."""
    alike: dict[str, tuple[float, str]] = {}
    for a, b, size in evidence.copies(data.train, data.features, 0.9):
        for one, other in ((a, b), (b, a)):
            alike[one] = max(alike.get(one, (0.0, "")), (size, other))
    columns = []
    for name in data.features:
        kind = claim.get("types", {}).get(name) or _kind(data.train[name])
        row: Document = {
            "column": name,
            "type": kind,
            "distinct": int(data.train[name].nunique()),
            "relation": claim["relations"].get(name, "none"),
            "drift": drift(data.train[name], data.test[name], kind) if claim.get("drifts", True) else None,
        }
        if name in alike:
            row["like"] = alike[name][1]
        if name in claim.get("sentinels", {}):
            row |= {"sentinel": claim["sentinels"][name], "actions": ["mark_missing"]}
        if name in claim.get("centers", {}):
            row |= {"actions": ["add_distance"], "center": claim["centers"][name]}
        if kind == "number_as_text":
            row["actions"] = ["to_number"]
        columns.append(row)
    return {"columns": columns}


def _kind(column: Any) -> str:
    if column.nunique() <= 1:
        return "constant"
    if pd.api.types.is_bool_dtype(column) or (
        set(column.dropna().unique()) <= {True, False} and column.dtype == object
    ):
        return "boolean"
    return "number" if is_number(column) else "category"


def drift(train: Any, test: Any, kind: str) -> float | None:
    """The distance of two distributions, if it is above 0.1 and beyond chance."""
    if kind == "date":
        train, test = (pd.to_datetime(part).astype("int64") for part in (train, test))
    if kind == "text":
        train, test = (part.fillna("").str.len() for part in (train, test))
    if kind in ("number", "date", "text"):
        found = stats.ks_2samp(train.dropna(), test.dropna())
        return float(found.statistic) if found.statistic > 0.1 and found.pvalue < 1e-5 else None
    if kind == "number_as_text":
        return None
    shares = [part.value_counts(normalize=True) for part in (train, test)]
    gaps = shares[0].sub(shares[1], fill_value=0).abs()
    if gaps.empty or gaps.max() <= 0.1:
        return None
    value = gaps.idxmax()
    table = [[int((part == value).sum()), int((part != value).sum())] for part in (train, test)]
    return float(gaps.max()) if stats.chi2_contingency(table).pvalue < 1e-5 else None


def cv(data: Data, claim: dict[str, Any]) -> Document:
    """Claim: `groups` (a key), `time` (an order) and `method`."""
    repeated, shared = data.equal_rows()
    groups = None
    if claim.get("groups"):
        column = claim["groups"]["column"]
        known = set(data.train[column])
        groups = {
            "key": claim["groups"],
            "train_groups": len(known),
            "shared_groups": len(known & set(data.test[column])),
        }
    return {
        "target": data.target,
        "problem": problem(data),
        "train_rows": len(data.train),
        "test_rows": len(data.test),
        "smallest_class": None if data.regression else int(data.y.value_counts().min()),
        "duplicate_rows": repeated,
        "shared_rows": shared,
        "groups": groups,
        "time": claim.get("time"),
        "method": claim["method"],
    }


def problem(data: Data) -> str:
    """The kind of the target."""
    return "regression" if data.regression else "binary" if data.y.nunique() == 2 else "multiclass"


def scaling(data: Data, claim: dict[str, str]) -> Document:
    """Claim: scalers by column; others are standardized."""
    rows = []
    for name in data.numbers:
        column = data.train[name].dropna().astype(float)
        low, high = column.quantile([0.25, 0.75])
        far = (column < low - 1.5 * (high - low)) | (column > high + 1.5 * (high - low))
        rows.append(
            {
                "column": name,
                "mean": float(column.mean()),
                "std": float(column.std()),
                "skewed": bool(abs(column.skew()) > 1),
                "outliers": bool(far.mean() > 0.05),
                "scaler": {"name": claim.get(name, "StandardScaler")},
            }
        )
    sizes = [row["std"] for row in rows]
    trees = ["decision_tree", "random_forest", "gradient_boosted_trees"]
    return {"features": rows, "spread": max(sizes) / min(sizes), "not_needed_for": trees}


def leakage(data: Data, claim: list[tuple[str, list[str], str]]) -> Document:
    """Claim: kind, columns and mitigation of each leak."""
    repeated, shared = data.equal_rows()
    ids = [name for name in data.question["ids"] if name in data.train and is_number(data.train[name])]
    numbers = [*ids, *(name for name in data.features if is_number(data.train[name]))]
    sizes = {name: evidence.strength(data.train[name], data.y) for name in numbers}
    return {
        "duplicate_rows": repeated,
        "shared_rows": shared,
        "feature_strengths": [
            {"column": name, "strength": size} for name, size in sorted(sizes.items(), key=lambda item: -item[1])[:5]
        ],
        "risks": [
            {
                "kind": kind,
                "columns": columns,
                "strength": max(
                    (
                        sizes.get(name) or evidence.strength(data.train[name].notna().astype(int), data.y)
                        for name in columns
                    ),
                    default=shared / len(data.test),
                ),
                "mitigation": {"name": mitigation},
            }
            for kind, columns, mitigation in claim
        ],
    }


def features(data: Data, claim: dict[str, Any]) -> Document:
    """Claim: what each feature `tells` (others: alone), `drop`, `pairs` and `transform`."""
    return {
        "features": [
            {
                "column": name,
                "strength": evidence.strength(data.train[name], data.y),
                "tells": claim["tells"].get(name, "alone"),
                "keep": name not in claim.get("drop", ()),
            }
            for name in data.features
        ],
        "pairs": [list(pair) for pair in claim.get("pairs", ())],
        "copies": [[a, b] for a, b, _size in evidence.copies(data.train, data.features, 0.95)],
        "skewness": float(stats.skew(data.y)) if data.regression else None,
        "transform": claim.get("transform", "none"),
    }


def shift(data: Data, claim: dict[str, Any]) -> Document:
    """Claim: `broken`, `changes`, `drop`, `weights`, `recent`, and the `target` to expect (else as in training)."""
    same = (
        float(data.y.mean())
        if data.regression
        else {plain(value): float(share) for value, share in data.y.value_counts(normalize=True).items()}
    )
    broken = claim.get("broken", [])
    return {
        "features": [
            {
                "column": name,
                "distance": evidence.distance(data.train[name], data.test[name]),
                "broken": name in broken,
            }
            for name in data.features
            if is_number(data.train[name]) or data.train[name].nunique() <= 50
        ],
        "target": claim.get("target", same),
        "changes": claim.get("changes"),
        "drop": claim.get("drop", broken),
        "weights": claim.get("weights", "none"),
        "recent": claim.get("recent", 1.0),
    }
