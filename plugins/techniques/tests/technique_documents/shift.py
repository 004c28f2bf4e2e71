"""Answers to `shift`."""

from __future__ import annotations

from typing import Any

EMPTY: dict[str, Any] = {
    "features": [], "target": 0.0, "changes": None, "drop": [], "weights": "none", "recent": 1.0
}  # fmt: skip


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
