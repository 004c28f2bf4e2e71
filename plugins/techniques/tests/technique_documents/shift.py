"""Answers to `shift`."""

from __future__ import annotations

from typing import Any

from mleredux_techniques.kit import Dataset

EMPTY: dict[str, Any] = {
    "features": [], "target": 0.0, "changes": None, "drop": [], "weights": "none", "recent": 1.0
}  # fmt: skip


def perfect(truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    drop, weights, recent = truth["strong"]
    return {
        "features": [
            {"column": name, "distance": value, "broken": name in truth["broken"]}
            for name, value in truth["distances"].items()
        ],
        "target": truth["target"].get("", truth["target"]),
        "changes": truth["changes"] if recent == 1 else truth["moment"],
        "drop": drop,
        "weights": weights,
        "recent": recent,
    }


def naive(best: dict[str, Any], truth: dict[str, Any], *, facts: bool) -> dict[str, Any]:
    no: dict[str, Any] = {"drop": [], "weights": "none", "recent": 1.0}
    if not facts:
        no |= {"features": [{**one, "broken": False} for one in best["features"]], "changes": None}
        no["target"] = truth["train"].get("", truth["train"])
    return no


def play(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    names = [] if kind == "empty" else question["features"]
    features = [{"column": name, "distance": 0.3, "broken": kind == "everything"} for name in names]
    drop = names[:1] if kind == "contradicting" else []
    return {**EMPTY, "features": features, "drop": drop, "weights": "covariate" if kind == "textbook" else "none"}
