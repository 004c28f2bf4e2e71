"""Documents of agents that play the score instead of looking at the data. For tables and tests: all stay below `BOUND`.

They know what the description and `question.json` say: names of columns, and no more.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mleredux_techniques.description import example

BOUND = 0.4
"""No such agent reaches more, on any instance of any technique."""
KINDS = ("everything", "empty", "example", "contradicting", "textbook")


def play(kind: str, technique: str, public: Path) -> dict[str, Any]:
    """The document of a gaming agent, as JSON values; the reader may refuse it, which scores nothing.

    Args:
        kind: `everything` lists all there could be, `empty` as little as the form allows, `example` copies the
            description's, `contradicting` claims one thing and recommends another, `textbook` always says the same.
        public: The task's public files.
    """
    if kind == "example":
        copied: dict[str, Any] = json.loads(example(technique))
        return copied
    question = json.loads((public / "question.json").read_bytes())
    makers: dict[str, Callable[[str, dict[str, Any]], dict[str, Any]]] = {
        "imbalance": _imbalance,
        "missing": _missing,
        "encoding": _encoding,
        "cv": _cv,
        "scaling": _scaling,
        "leakage": _leakage,
    }
    return makers[technique](kind, question)


def _imbalance(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    counts = {"0": 900, "1": 100}
    strategies: list[dict[str, Any]] = [{"name": "SMOTE"}]
    if kind == "everything":
        counts = {"0": 900, "False": 900, "1": 100, "True": 100} | {str(number): 100 for number in range(2, 100)}
        strategies = [{"name": "class_weight"}, {"name": "SMOTE"}, {"name": "TunedThresholdClassifierCV"}]
    elif kind == "empty":
        counts, strategies = {"0": 1}, [{"name": "none"}]
    elif kind == "contradicting":
        strategies = [{"name": "none"}, {"name": "class_weight"}]
    most, least = max(counts.values()), min(counts.values())
    return {
        "target": question["target"],
        "class_counts": counts,
        "majority_class": next(name for name, count in counts.items() if count == most),
        "minority_class": next(name for name, count in counts.items() if count == least),
        "imbalance_ratio": most / least,
        "severity": "balanced" if most == least else "moderate",
        "strategies": strategies,
    }


def _missing(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    imputations: dict[str, dict[str, Any]] = {
        "everything": {"name": "IterativeImputer", "add_indicator": True},
        "contradicting": {"name": "drop"},
        "textbook": {"name": "SimpleImputer", "strategy": "median"},
    }
    names = [] if kind == "empty" else question["features"]
    columns = [
        {
            "column": name,
            "missing": 1 if kind == "contradicting" else 10,
            "mechanism": "MNAR" if kind == "everything" else "MCAR",
            "imputation": imputations[kind],
        }
        for name in names
    ]
    together = [{"columns": names[:200], "rows": 10}] if kind == "everything" and len(names) > 1 else []
    return {"complete_rows": 1000, "columns": columns, "together": together}


def _encoding(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    names = [] if kind == "empty" else question["features"]
    kinds: dict[str, tuple[str, int, dict[str, Any]]] = {
        "everything": ("nominal", 10, {"name": "TargetEncoder"}),
        "contradicting": ("identifier", 3, {"name": "OneHotEncoder"}),
        "textbook": ("nominal", 5, {"name": "OneHotEncoder"}),
        "empty": ("nominal", 5, {"name": "drop"}),
    }
    said, distinct, encoding = kinds[kind]
    return {
        "features": [{"column": name, "type": said, "cardinality": distinct, "encoding": encoding} for name in names]
    }


def _cv(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    column = (question["ids"] or question["features"])[0]
    key = {"column": column, "separator": None}
    rows = 0 if kind == "empty" else 1000
    claims = kind == "everything"
    grouped = {"name": "StratifiedGroupKFold", "groups": key}
    groups = {"key": key, "train_groups": 100, "shared_groups": 0}
    return {
        "target": question["target"],
        "problem": "binary",
        "train_rows": rows,
        "test_rows": rows,
        "smallest_class": rows // 2,
        "duplicate_rows": 10 if claims else 0,
        "shared_rows": 10 if claims else 0,
        "groups": groups if claims or kind == "contradicting" else None,
        "time": {"column": question["features"][0], "test_after_train": True} if claims else None,
        "method": grouped if claims else {"name": "StratifiedKFold"},
    }


def _scaling(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    scalers = {"everything": "QuantileTransformer", "contradicting": "none", "textbook": "StandardScaler"}
    skewed = kind in ("everything", "contradicting")
    names = [] if kind == "empty" else question["features"]
    trees = ["decision_tree", "random_forest", "gradient_boosted_trees"]
    every = ["linear_model", "k_nearest_neighbors", "svm", "neural_network", *trees]
    return {
        "features": [
            {
                "column": name,
                "mean": 0.0,
                "std": 1.0,
                "skewed": skewed,
                "outliers": skewed,
                "scaler": {"name": scalers[kind]},
            }
            for name in names
        ],
        "spread": 1.0,
        "not_needed_for": every if kind == "everything" else [] if kind == "empty" else trees,
    }


def _leakage(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    names = [*question["ids"], *question["features"]]
    risks: list[dict[str, Any]] = []
    if kind in ("everything", "contradicting"):
        how = {"name": "drop_columns" if kind == "everything" else "none"}
        risks = [{"kind": "copy", "columns": [name], "strength": 0.9, "mitigation": how} for name in names[:49]]
    if kind == "everything":
        risks.append(
            {"kind": "duplicate_rows", "columns": [], "strength": 0.2, "mitigation": {"name": "drop_duplicates"}}
        )
    if kind == "textbook":
        how = {"name": "drop_columns"}
        risks = [{"kind": "id_order", "columns": [n], "strength": 0.9, "mitigation": how} for n in question["ids"]]
    listed = [] if kind == "empty" else [{"column": name, "strength": 0.9} for name in names[:5]]
    shared = 10 if kind == "everything" else 0
    return {"duplicate_rows": shared, "shared_rows": shared, "feature_strengths": listed, "risks": risks}
