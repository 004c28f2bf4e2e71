"""Answers to `features`."""

from __future__ import annotations

from typing import Any

from mleredux_techniques.kit import Dataset

EMPTY: dict[str, Any] = {"features": [], "pairs": [], "copies": [], "skewness": None, "transform": "none"}


def perfect(truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    dropped, transform = truth["strong"]
    features = [
        {"column": name, "strength": told, "tells": truth["tells"].get(name, "alone"), "keep": name not in dropped}
        for name, told in truth["strengths"].items()
    ]
    return {
        "features": features,
        "transform": transform,
        **{key: truth[key] for key in ("pairs", "copies", "skewness")},
    }


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
