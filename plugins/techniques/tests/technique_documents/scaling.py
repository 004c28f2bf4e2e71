"""Answers to `scaling`."""

from __future__ import annotations

from typing import Any

EMPTY: dict[str, Any] = {
    "features": [],
    "spread": 1.0,
    "not_needed_for": [],
}


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
