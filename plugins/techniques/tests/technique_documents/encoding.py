"""Answers to `encoding`."""

from __future__ import annotations

from typing import Any

from mleredux_techniques.encoding.grading import STUDY
from mleredux_techniques.kit import Dataset, Instance

from technique_documents.bases import base_of

EMPTY: dict[str, Any] = {
    "features": [],
}


def perfect(truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    plan = STUDY.strong(Instance(dataset, truth, base_of(dataset)))
    features = []
    for name, fact in truth["features"].items():
        held = plan.get(name)
        if "numeric" in fact["types"] and held is None:
            continue
        chosen = held.model_dump() if held is not None else {"name": "drop"}
        features.append(
            {"column": name, "type": fact["types"][0], "cardinality": fact["cardinality"], "encoding": chosen}
        )
    return {"features": features}


def play(kind: str, question: dict[str, Any]) -> dict[str, Any]:
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
