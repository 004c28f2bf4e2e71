"""Answers to `eda`."""

from __future__ import annotations

from typing import Any

from mleredux_techniques.kit import Dataset

EMPTY: dict[str, Any] = {"columns": []}


def perfect(truth: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    strong = {name: [] for name in truth["columns"]} | {name: [kind] for kind, name, _value in truth["strong"]}
    values = {name: value for kind, name, value in truth["strong"] if kind == "add_distance"}
    columns = []
    for name, told in truth["columns"].items():
        relation = (told["relation"] or ["none"])[-1]
        found = {"column": name, **{key: told[key] for key in ("type", "distinct", "drift")}, "relation": relation}
        found |= {"sentinel": next(iter(told["sentinel"]), None), "like": next(iter(told["like"]), None)}
        columns.append({**found, "actions": strong[name], "center": values.get(name)})
    return {"columns": columns}


def naive(best: dict[str, Any], truth: dict[str, Any], *, facts: bool) -> dict[str, Any]:
    counts = ("column", "type", "distinct")
    kept = [one if facts else {key: one[key] for key in counts} for one in best["columns"]]
    return {"columns": [{**one, "actions": []} for one in kept]}


def play(kind: str, question: dict[str, Any]) -> dict[str, Any]:
    claims: dict[str, dict[str, Any]] = {
        "everything": {"sentinel": -999.0, "relation": "monotone", "drift": 0.2, "actions": ["mark_missing"]},
        "contradicting": {"sentinel": -999.0, "relation": "nonmonotone", "drift": 0.2},
        "textbook": {"relation": "monotone"},
    }
    names = [] if kind == "empty" else question["features"]
    return {"columns": [{"column": n, "type": "number", "distinct": 100, **claims.get(kind, {})} for n in names]}
