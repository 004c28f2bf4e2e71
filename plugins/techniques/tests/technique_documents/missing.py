"""Answers to `missing`."""

from __future__ import annotations

from typing import Any

from mleredux_techniques.kit import Dataset, Instance
from mleredux_techniques.missing.grading import STUDY

from technique_documents.bases import base_of

EMPTY: dict[str, Any] = {
    "complete_rows": 0,
    "columns": [],
}


def perfect(truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    plan = STUDY.strong(Instance(dataset, truth, base_of(dataset)))
    columns = []
    for name, count in truth["counts"].items():
        fact = truth["mechanisms"].get(name, {"mechanism": "MCAR", "depends_on": []})
        held = plan.get(name)
        imputation = held.model_dump() if held is not None else {"name": "SimpleImputer", "strategy": "most_frequent"}
        columns.append(
            {
                "column": name,
                "missing": count,
                "mechanism": fact["mechanism"],
                "depends_on": fact["depends_on"][:5] if fact["mechanism"] == "MAR" else [],
                "imputation": imputation,
            }
        )
    together = [{"columns": [a, b], "rows": rows} for a, b, rows in truth["together"]]
    return {"complete_rows": truth["complete_rows"], "columns": columns, "together": together}


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
