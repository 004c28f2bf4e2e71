"""Answers to `imbalance`."""

from __future__ import annotations

from typing import Any

EMPTY: dict[str, Any] = {
    "target": "returned",
    "class_counts": {"0": 1, "1": 1},
    "majority_class": "0",
    "minority_class": "1",
    "imbalance_ratio": 1.0,
    "severity": "balanced",
    "strategies": [{"name": "class_weight"}],
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
