"""Answers to `ensembling`."""

from __future__ import annotations

from typing import Any

EMPTY: dict[str, Any] = {"models": [], "copies": []}


def naive(best: dict[str, Any], truth: dict[str, Any], *, facts: bool) -> dict[str, Any]:
    always: dict[str, Any] = {"weight": 1.0} if facts else {"weight": 1.0, "optimistic": False}
    models = [{**one, **always} for one in best["models"]]
    return {"models": models, **({} if facts else {"copies": []})}


def play(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    names = ("linear", "trees", "neighbors", "network")
    claims = kind in ("everything", "contradicting")
    one = {"score": 0.5, "optimistic": claims, "weight": 1.0}
    models = [{"model": name, **one} for name in names if kind != "empty"]
    return {"models": models, "copies": [["linear", "trees"]] if claims else []}
