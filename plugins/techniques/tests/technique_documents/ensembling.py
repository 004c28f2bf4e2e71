"""Answers to `ensembling`."""

from __future__ import annotations

from typing import Any

from mleredux_techniques.kit import Dataset

EMPTY: dict[str, Any] = {"models": [], "copies": []}


def perfect(truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    total = sum(truth["strong"].values())
    models = [
        {"model": name, **fact, "weight": truth["strong"].get(name, 0.0) / total}
        for name, fact in truth["models"].items()
    ]
    return {"models": models, "copies": truth["copies"]}


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
