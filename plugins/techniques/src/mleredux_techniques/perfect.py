"""The best document for a prepared technique task: the truth, with the strong choice. For tables and tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mleredux_techniques.dataset import Dataset, load
from mleredux_techniques.efficacy import cv, encoding, imbalance, missing, scaling
from mleredux_techniques.facts.scaling import INDIFFERENT, OUTLYING, SKEWED
from mleredux_techniques.preparing import TRUTH_FILE
from mleredux_techniques.schemas import DOCUMENTS, Document


def perfect(technique: str, private: Path) -> Document:
    """The document of one who knows the private folder of a technique task."""
    truth = json.loads((private / TRUTH_FILE).read_bytes())
    dataset = load(private)
    content = {
        "imbalance": _imbalance,
        "missing": _missing,
        "encoding": _encoding,
        "cv": _cv,
        "scaling": _scaling,
        "leakage": _leakage,
    }[technique](truth, dataset)
    return DOCUMENTS[technique].model_validate_json(json.dumps(content))


def _imbalance(truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    counts: dict[str, int] = truth["counts"]
    strategy = imbalance.strong(dataset).model_dump() if dataset.features else {"name": "class_weight"}
    return {
        "target": truth["target"],
        "class_counts": counts,
        "majority_class": max(counts, key=lambda name: counts[name]),
        "minority_class": min(counts, key=lambda name: counts[name]),
        "imbalance_ratio": truth["ratio"],
        "severity": truth["severity"],
        "strategies": [strategy],
    }


def _missing(truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    _name, imputations = missing.strong(dataset)
    columns = []
    for name, count in truth["counts"].items():
        fact = truth["mechanisms"].get(name, {"mechanism": "MCAR", "depends_on": []})
        held = imputations.get(name)
        imputation = held.model_dump() if held is not None else {"name": "SimpleImputer", "strategy": "most_frequent"}
        columns.append(
            {
                "column": name,
                "missing": count,
                "mechanism": fact["mechanism"],
                "depends_on": fact["depends_on"][:5] if fact["mechanism"] == "MAR" else [],
                "imputation": imputation,
            }
        )
    together = [{"columns": [a, b], "rows": rows} for a, b, rows in truth["together"]]
    return {"complete_rows": truth["complete_rows"], "columns": columns, "together": together}


def _encoding(truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    _name, encodings = encoding.strong(dataset)
    features = []
    for name, fact in truth["features"].items():
        held = encodings.get(name)
        if "numeric" in fact["types"] and held is None:
            continue
        chosen = held.model_dump() if held is not None else {"name": "drop"}
        features.append(
            {"column": name, "type": fact["types"][0], "cardinality": fact["cardinality"], "encoding": chosen}
        )
    return {"features": features}


def _cv(truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    groups = truth["groups"]
    told = None
    if groups:
        column, separator = groups["keys"][0]
        told = {"key": {"column": column, "separator": separator}, **{k: v for k, v in groups.items() if k != "keys"}}
    return {
        **{name: value for name, value in truth.items() if name not in ("groups", "time")},
        "groups": told,
        "time": {"column": truth["time"], "test_after_train": True} if truth["time"] else None,
        "method": cv.strong(dataset).model_dump(),
    }


def _scaling(truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    _name, scalers = scaling.strong(dataset)
    features = []
    for name, fact in truth["features"].items():
        held = scalers.get(name)
        features.append(
            {
                "column": name,
                "mean": fact["mean"],
                "std": fact["std"],
                "skewed": abs(fact["skewness"]) > SKEWED,
                "outliers": fact["outlying"] > OUTLYING,
                "scaler": held.model_dump() if held is not None else {"name": "none"},
            }
        )
    return {"features": features, "spread": truth["spread"], "not_needed_for": list(INDIFFERENT)}


def _leakage(truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    strengths = [{"column": name, "strength": value} for name, value in list(truth["strengths"].items())[:5]]
    risks = []
    for leak in truth["leaks"]:
        rows = "duplicate_rows" in leak["kinds"]
        risks.append(
            {
                "kind": leak["kinds"][0],
                "columns": leak["columns"],
                "strength": leak["strength"] if leak["strength"] is not None else 1.0,
                "mitigation": {"name": "drop_duplicates" if rows else "drop_columns"},
            }
        )
    counts = {name: truth[name] for name in ("duplicate_rows", "shared_rows")}
    return {**counts, "feature_strengths": strengths, "risks": risks}
