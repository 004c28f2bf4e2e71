"""Answers to `calibration`."""

from __future__ import annotations

from typing import Any

from mleredux_techniques.kit import Dataset

EMPTY: dict[str, Any] = {"models": [], "decision": "argmax"}


def perfect(truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    method, decision = truth["strong"]
    models = [
        {
            "model": name,
            **{key: fact[key] for key in ("accuracy", "confidence", "error", "verdict")},
            "classes": [{"name": item, "side": side} for item, side in fact["classes"].items()],
            "method": method,
        }
        for name, fact in truth["models"].items()
    ]
    return {"models": models, "decision": decision}


def naive(best: dict[str, Any], truth: dict[str, Any], *, facts: bool) -> dict[str, Any]:
    always = {"method": "none"} if facts else {"method": "none", "verdict": "calibrated", "classes": []}
    return {"models": [{**one, **always} for one in best["models"]], "decision": "argmax"}


def play(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    claims = kind in ("everything", "contradicting")
    one = {
        "model": "model",
        "accuracy": 0.8,
        "confidence": 0.9,
        "error": 0.1,
        "verdict": "overconfident" if claims else "calibrated",
        "method": "none" if kind == "contradicting" else "isotonic",
    }
    names = ("linear", "trees", "neighbors", "network", "model")
    return {"models": [{**one, "model": name} for name in names if kind != "empty"], "decision": "argmax"}
