"""Answers to `metric`."""

from __future__ import annotations

from typing import Any

EMPTY: dict[str, Any] = {
    "asks": "labels",
    "better": "higher",
    "ignores": [],
    "constant": {"0": 1.0},
    "constant_score": 0.0,
    "score": 0.0,
    "improve": [],
    "steps": ["none"],
}


def naive(best: dict[str, Any], truth: dict[str, Any], *, facts: bool) -> dict[str, Any]:
    return {"steps": ["none"], **({} if facts else {"ignores": [], "improve": []})}


def play(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    numbers = question["metric"] in ("rmse", "mae", "rmsle", "r2")
    every = ["sharpening", "class_weights", "shift", "scale", "order_preserving"]
    return {
        **EMPTY,
        "asks": "numbers" if numbers else "probabilities",
        "constant": 0.0 if numbers else {"0": 0.5, "1": 0.5},
        "improve": ["scale" if numbers else "thresholds"] if kind == "contradicting" else [],
        "ignores": every if kind in ("everything", "contradicting") else [],
        "steps": ["none"] if kind in ("empty", "contradicting") else ["mean" if numbers else "isotonic"],
    }
