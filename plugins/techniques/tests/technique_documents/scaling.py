"""Answers to `scaling`."""

from __future__ import annotations

from typing import Any

from mleredux_techniques.kit import Dataset, Instance
from mleredux_techniques.scaling.grading import INDIFFERENT, OUTLYING, SKEWED, STUDY

from technique_documents.bases import base_of

EMPTY: dict[str, Any] = {
    "features": [],
    "spread": 1.0,
    "not_needed_for": [],
}


def perfect(truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    plan = STUDY.strong(Instance(dataset, truth, base_of(dataset)))
    features = []
    for name, fact in truth["features"].items():
        held = plan.get(name)
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


def play(kind: str, question: dict[str, Any]) -> dict[str, Any]:
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
