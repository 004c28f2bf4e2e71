"""Class counts, and class weights if the counts differ widely."""

from __future__ import annotations

from typing import Any

from mleredux_agent_analyst.tables import Tables

WORDS = ((1.5, "balanced"), (3.0, "mild"), (10.0, "moderate"), (100.0, "severe"))
FEW = 30
"""Minimum number of rows per class for threshold tuning."""


def analyse(tables: Tables) -> dict[str, Any]:
    """Return the document: class weights above a ratio of 1.5; above 10, with enough rows, threshold tuning."""
    counts = {str(name): int(count) for name, count in tables.labels.value_counts().items()}
    most, least = max(counts, key=lambda name: counts[name]), min(counts, key=lambda name: counts[name])
    ratio = counts[most] / counts[least]
    if ratio < WORDS[0][0]:
        first: dict[str, Any] = {"name": "none"}
    elif ratio < 10 or counts[least] < FEW:
        first = {"name": "class_weight", "class_weight": "balanced"}
    else:
        first = {"name": "TunedThresholdClassifierCV", "scoring": "balanced_accuracy"}
    return {
        "target": tables.target,
        "class_counts": counts,
        "majority_class": most,
        "minority_class": least,
        "imbalance_ratio": ratio,
        "severity": next((word for bound, word in WORDS if ratio < bound), "extreme"),
        "strategies": [first],
        "rationale": f"{most} has {counts[most]} rows, {least} {counts[least]}.",
    }
