"""Answers to `missing`."""

from __future__ import annotations

from typing import Any

EMPTY: dict[str, Any] = {
    "complete_rows": 0,
    "columns": [],
}


def play(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    imputations: dict[str, dict[str, Any]] = {
        "everything": {"name": "IterativeImputer", "add_indicator": True},
        "contradicting": {"name": "drop"},
        "textbook": {"name": "SimpleImputer", "strategy": "median"},
    }
    names = [] if kind == "empty" else question["features"]
    columns = [
        {
            "column": name,
            "missing": 1 if kind == "contradicting" else 10,
            "mechanism": "MNAR" if kind == "everything" else "MCAR",
            "imputation": imputations[kind],
        }
        for name in names
    ]
    together = [{"columns": names[:200], "rows": 10}] if kind == "everything" and len(names) > 1 else []
    return {"complete_rows": 1000, "columns": columns, "together": together}
