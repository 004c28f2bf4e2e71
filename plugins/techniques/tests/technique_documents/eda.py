"""Answers to `eda`."""

from __future__ import annotations

from typing import Any

EMPTY: dict[str, Any] = {"columns": []}


def naive(best: dict[str, Any], truth: dict[str, Any], *, facts: bool) -> dict[str, Any]:
    counts = ("column", "type", "distinct")
    kept = [one if facts else {key: one[key] for key in counts} for one in best["columns"]]
    return {"columns": [{**one, "actions": []} for one in kept]}


def play(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    claims: dict[str, dict[str, Any]] = {
        "everything": {"sentinel": -999.0, "relation": "monotone", "drift": 0.2, "actions": ["mark_missing"]},
        "contradicting": {"sentinel": -999.0, "relation": "nonmonotone", "drift": 0.2},
        "textbook": {"relation": "monotone"},
    }
    names = [] if kind == "empty" else question["features"]
    return {"columns": [{"column": n, "type": "number", "distinct": 100, **claims.get(kind, {})} for n in names]}
