"""Answers to `cv`."""

from __future__ import annotations

from typing import Any

EMPTY: dict[str, Any] = {
    "target": "returned",
    "problem": "binary",
    "train_rows": 0,
    "test_rows": 0,
    "smallest_class": 0,
    "duplicate_rows": 0,
    "shared_rows": 0,
    "groups": None,
    "time": None,
    "method": {"name": "StratifiedKFold"},
}


def play(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    column = (question["ids"] or question["features"])[0]
    key = {"column": column, "separator": None}
    rows = 0 if kind == "empty" else 1000
    claims = kind == "everything"
    grouped = {"name": "StratifiedGroupKFold", "groups": key}
    groups = {"key": key, "train_groups": 100, "shared_groups": 0}
    return {
        "target": question["target"],
        "problem": "binary",
        "train_rows": rows,
        "test_rows": rows,
        "smallest_class": rows // 2,
        "duplicate_rows": 10 if claims else 0,
        "shared_rows": 10 if claims else 0,
        "groups": groups if claims or kind == "contradicting" else None,
        "time": {"column": question["features"][0], "test_after_train": True} if claims else None,
        "method": grouped if claims else {"name": "StratifiedKFold"},
    }
