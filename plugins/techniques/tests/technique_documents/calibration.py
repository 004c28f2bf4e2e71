"""Answers to `calibration`."""

from __future__ import annotations

from typing import Any

EMPTY: dict[str, Any] = {"models": [], "decision": "argmax"}


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
