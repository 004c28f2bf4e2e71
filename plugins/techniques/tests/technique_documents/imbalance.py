"""Answers to `imbalance`."""

from __future__ import annotations

from typing import Any

from mleredux_techniques.imbalance.grading import STUDY
from mleredux_techniques.kit import Dataset, Instance

from technique_documents.bases import base_of

EMPTY: dict[str, Any] = {
    "target": "returned",
    "class_counts": {"0": 1, "1": 1},
    "majority_class": "0",
    "minority_class": "1",
    "imbalance_ratio": 1.0,
    "severity": "balanced",
    "strategies": [{"name": "class_weight"}],
}


def perfect(truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    counts: dict[str, int] = truth["counts"]
    strategy = {"name": "class_weight"}
    if dataset.features:
        strategy = STUDY.strong(Instance(dataset, truth, base_of(dataset))).model_dump()
    return {
        "target": truth["target"],
        "class_counts": counts,
        "majority_class": max(counts, key=lambda name: counts[name]),
        "minority_class": min(counts, key=lambda name: counts[name]),
        "imbalance_ratio": truth["ratio"],
        "severity": truth["severity"],
        "strategies": [strategy],
    }


def play(kind: str, question: dict[str, Any]) -> dict[str, Any]:
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
