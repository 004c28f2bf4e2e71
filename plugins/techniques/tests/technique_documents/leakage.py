"""Answers to `leakage`."""

from __future__ import annotations

from typing import Any

EMPTY: dict[str, Any] = {
    "duplicate_rows": 0,
    "shared_rows": 0,
    "feature_strengths": [],
    "risks": [],
}


def play(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    names = [*question["ids"], *question["features"]]
    risks: list[dict[str, Any]] = []
    if kind in ("everything", "contradicting"):
        how = {"name": "drop_columns" if kind == "everything" else "none"}
        risks = [{"kind": "copy", "columns": [name], "strength": 0.9, "mitigation": how} for name in names[:49]]
    if kind == "everything":
        risks.append(
            {"kind": "duplicate_rows", "columns": [], "strength": 0.2, "mitigation": {"name": "drop_duplicates"}}
        )
    if kind == "textbook":
        how = {"name": "drop_columns"}
        risks = [{"kind": "id_order", "columns": [n], "strength": 0.9, "mitigation": how} for n in question["ids"]]
    listed = [] if kind == "empty" else [{"column": name, "strength": 0.9} for name in names[:5]]
    shared = 10 if kind == "everything" else 0
    return {"duplicate_rows": shared, "shared_rows": shared, "feature_strengths": listed, "risks": risks}
