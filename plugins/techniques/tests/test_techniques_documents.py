"""Documents: examples are well-formed, contradictions are refused, in one sentence that names the field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mleredux_techniques.kit import example
from pydantic import ValidationError
from technique_documents import TECHNIQUES, read


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_the_example_is_well_formed_by_model_and_schema(technique: str) -> None:
    from jsonschema import Draft202012Validator

    content = json.loads(example(TECHNIQUES[technique]))
    read(technique, content)
    form = TECHNIQUES[technique].document.model_json_schema()
    Draft202012Validator.check_schema(form)
    Draft202012Validator(form).validate(content)


def risk(**changes: Any) -> dict[str, Any]:
    return {"kind": "copy", "columns": ["ring"], "strength": 0.98, "mitigation": {"name": "drop_columns"}, **changes}


def calibrated(**changes: Any) -> dict[str, Any]:
    figures = {"accuracy": 0.8, "confidence": 0.9, "error": 0.1}
    return {"model": "forest", **figures, "verdict": "overconfident", "classes": [], "method": "none", **changes}


COLUMN = {"column": "crest", "type": "number", "distinct": 9}
CONTRADICTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("imbalance", {"imbalance_ratio": 9.0, "severity": "moderate"}, "imbalance_ratio contradicts"),
    ("imbalance", {"minority_class": "gentoo"}, "contradicts class_counts"),
    ("imbalance", {"majority_class": "emu"}, "not among class_counts"),
    ("imbalance", {"severity": "extreme"}, "severity contradicts"),
    ("missing", {"together": [{"columns": ["crest", "beak"], "rows": 1}]}, "not in `columns`"),
    ("missing", {"together": [{"columns": ["crest", "body_mass_g"], "rows": 9}]}, "more rows"),
    (
        "encoding",
        {"features": [{"column": "a", "type": "binary", "cardinality": 7, "encoding": {"name": "none"}}]},
        "7",
    ),
    ("cv", {"groups": None}, "that are not in `groups`"),
    ("cv", {"method": {"name": "TimeSeriesSplit", "time_column": "day"}}, "that is not in `time`"),
    ("cv", {"problem": "regression"}, "smallest_class"),
    ("scaling", {"spread": 2.0}, "`spread` contradicts"),
    ("scaling", {"not_needed_for": ["svm", "svm"]}, "twice"),
    ("eda", {"columns": [{**COLUMN, "actions": ["to_number"]}]}, "not `number_as_text`"),
    ("eda", {"columns": [{**COLUMN, "actions": ["mark_missing"]}]}, "has no sentinel"),
    ("eda", {"columns": [{**COLUMN, "relation": "nonmonotone", "actions": ["add_distance"]}]}, "no center"),
    ("metric", {"constant": {"adelie": 1.0}}, "`constant` does not match `asks`"),
    ("metric", {"steps": ["none", "round"]}, "`none` can't be combined with other steps"),
    ("ensembling", {"copies": [["forest", "pine"]]}, "not in `models`"),
    ("calibration", {"models": [calibrated(), calibrated()]}, "twice"),
    ("calibration", {"models": [calibrated(verdict="underconfident")]}, "contradicts its accuracy"),
    ("features", {"skewness": None}, "a class, which has no skewness"),
    ("features", {"pairs": [["acres", "parcel"]]}, "listed as uninformative"),
    ("shift", {"target": {"ripe": 0.2}}, "add up to 1"),
    ("shift", {"changes": None}, "`recent` contradicts `changes`"),
    ("leakage", {"risks": [risk(), risk(kind="noisy_copy")]}, "twice"),
    ("leakage", {"risks": [risk(strength=0.5)]}, "differs between `risks`"),
    ("leakage", {"shared_rows": 0, "risks": [risk(kind="duplicate_rows", columns=[])]}, "`shared_rows` above 0"),
]


@pytest.mark.parametrize(("technique", "changes", "told"), CONTRADICTIONS)
def test_contradictions_are_refused(technique: str, changes: dict[str, Any], told: str) -> None:
    content = {**json.loads(example(TECHNIQUES[technique])), **changes}
    with pytest.raises(ValidationError, match=told):
        read(technique, content)
