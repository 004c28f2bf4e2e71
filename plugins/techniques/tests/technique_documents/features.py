"""Answers to `features`."""

from __future__ import annotations

from typing import Any

EMPTY: dict[str, Any] = {"features": [], "pairs": [], "copies": [], "skewness": None, "transform": "none"}


def naive(best: dict[str, Any], truth: dict[str, Any], *, facts: bool) -> dict[str, Any]:
    always: dict[str, Any] = {"keep": True} if facts else {"keep": True, "tells": "alone"}
    no = {} if facts else {"pairs": [], "copies": []}
    return {"features": [{**one, **always} for one in best["features"]], "transform": "none", **no}


def play(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    names = [] if kind == "empty" else question["features"]
    tells = {"everything": "together", "contradicting": "nothing"}.get(kind, "alone")
    features = [{"column": name, "strength": 0.1, "tells": tells, "keep": True} for name in names]
    every = [[a, b] for place, a in enumerate(names) for b in names[:place]][:500] if kind == "everything" else []
    return {**EMPTY, "features": features, "pairs": every, "copies": every}
