"""Sentences of feedback: correct for one thing and for none, and complete where a list is cut."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import mleredux_techniques
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux_techniques.kit import Choice, Sheet, judge, spelled
from mleredux_techniques.missing import grading as missing
from mleredux_techniques.scaling import grading as scaling
from technique_documents import TECHNIQUES, read

FILES = sorted(Path(mleredux_techniques.__file__).parent.glob("*/technique.toml"))
PLURAL = re.compile(r"\{\w+(?:\[\w+\])?:?[^}]*\} (?!of\b|times\b)(?:[a-z]+ )?(?!is\b)[a-z]+s\b")
"""A number before a noun in the plural."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_no_sentence_takes_a_number_for_several(path: Path) -> None:
    questions = tomllib.loads(path.read_text(encoding="utf-8"))["questions"]
    sentences = [text for entry in questions.values() for key, text in entry.items() if key in ("says", "none")]
    assert sentences and not [text for text in sentences if PLURAL.search(text)]
    assert PLURAL.search("{true:,} training rows repeat an earlier one.")


@given(st.integers(0, 120), st.sampled_from([list, dict]))
def test_a_long_list_says_how_many_follow(count: int, kind: type) -> None:
    sheet = Sheet(scaling.__file__)
    names = [f"c{place}" for place in range(count)]
    true: Any = names if kind is list else dict.fromkeys(names, 1.0)
    shown = sheet.figure("skewed", 1.0, true, true, listed="").value["true"]
    assert shown == true if count <= 50 else f"and {count - 50} more" in (shown if kind is list else shown.values())


def test_mechanisms_are_listed_only_if_they_are_judged() -> None:
    fact = {"mechanism": "MCAR", "depends_on": [], "half": [], "accepted": ["MCAR"], "unjudged": []}
    facts = {"many": fact, "few": {**fact, "open": True}}

    def sentence_of(mechanisms: dict[str, Any]) -> str:
        counts = dict.fromkeys(mechanisms, 3)
        how = {"name": "SimpleImputer", "strategy": "mean"}
        columns = [{"column": name, "missing": 3, "mechanism": "MCAR", "imputation": how} for name in mechanisms]
        document = read("missing", {"complete_rows": 5, "columns": columns, "together": []})
        sheet = Sheet(missing.__file__)
        missing.mark(sheet, document, {"complete_rows": 5, "counts": counts, "together": [], "mechanisms": mechanisms})
        return next(part.explanation for part in sheet.facts().parts if part.name == "mechanisms")

    both = sentence_of(facts)
    assert "many MCAR. 1 of 1" in both and "few MCAR" not in both and "Not judged" in both and "MNAR counts" not in both
    assert "Not judged" not in sentence_of({"many": fact})
    assert "MNAR counts half, since nothing predicts the gaps: many." in sentence_of(
        {"many": {**fact, "unjudged": ["MNAR"]}}
    )
    assert sentence_of({"few": {**fact, "open": True}}).startswith("No mechanism can be judged. Not judged")


def test_without_a_leak_nothing_is_said_of_those_found() -> None:
    truth = {"duplicate_rows": 0, "shared_rows": 0, "strengths": {"x": 0.3}, "leaks": [], "unjudged": []}
    strength = [{"column": "x", "strength": 0.3}]
    document = {"duplicate_rows": 0, "shared_rows": 0, "feature_strengths": strength, "risks": []}
    parts = TECHNIQUES["leakage"].assess(read("leakage", document), truth).parts
    sentences = {part.name: part.explanation for part in parts}
    assert (
        sentences["risks"] == "This data has no known leak."
        and sentences["mitigations"] == "There is no leak to mitigate."
    )


def test_a_choice_that_is_the_naive_one_is_not_called_different() -> None:
    losses = np.array([0.3, 0.31, 0.29])
    choice, other = Choice(losses, "the same"), Choice(losses + 1e-6, "another")
    scorer: Any = type("Metric", (), {"title": "rmse", "unit": 1.0, "shown": float})()
    scorer.task = type("Task", (), {"metric": type("Id", (), {"id": "rmse"})})
    judged = [judge(choice, strong, choice, overlap=0.2, scorer=scorer) for strong in (choice, other)]
    sentences = [efficacy.parts[0].explanation for efficacy in judged]
    assert "Naive and strong are equal" in sentences[0] and "do not differ significantly" in sentences[1]


@pytest.mark.parametrize("technique", ["encoding", "scaling"])
def test_a_strategy_without_arguments_has_no_parentheses(technique: str) -> None:
    example = json.loads(TECHNIQUES[technique].folder.joinpath("example.json").read_text(encoding="utf-8"))
    document = read(technique, example)
    kind = {"encoding": "encoding", "scaling": "scaler"}[technique]
    texts = [spelled(getattr(entry, kind), set()) for entry in document.features]
    assert texts and not any("()" in text for text in texts)


def test_what_the_rows_cannot_decide_is_named() -> None:
    """Not counted among the columns of which nothing is found."""
    open_ = {"type": "number", "distinct": 9, "sentinel": [], "like": [], "drift": None, "relation": []}
    columns = {"clear": {**open_, "open": []}, "unclear": {**open_, "open": ["relation"]}}
    rows = [{"column": name, "type": "number", "distinct": 9, "relation": "none"} for name in columns]
    known = TECHNIQUES["eda"].assess(read("eda", {"columns": rows}), {"columns": columns})
    sentences = {part.name: part.explanation for part in known.parts}
    assert sentences["relation"] == "Columns that predict the target: none; undecided: unclear."
    assert "undecided" not in sentences["drift"]
    lists: dict[str, list[Any]] = {name: [] for name in ("pairs", "open pairs", "copies", "open copies")}
    truth = {"strengths": {"a": 0.3, "b": 0.0}, "tells": {"b": "nothing"}, "skewness": None, **lists}
    features = [{"column": name, "strength": size, "tells": "nothing"} for name, size in truth["strengths"].items()]
    entries = {"pairs": [], "copies": [], "skewness": None, "transform": "none"}
    document = {"features": [{**row, "keep": True} for row in features], **entries}
    facts = TECHNIQUES["features"].assess(read("features", document), truth)
    assert "Features without information: b; undecided: a." in [part.explanation for part in facts.parts]


def test_a_leak_without_columns_and_types_of_names_read_like_those_with_more() -> None:
    leak = {"kinds": ["duplicate_rows"], "columns": [], "strength": 0.5, "planted": False}
    truth = {"duplicate_rows": 3, "shared_rows": 5, "strengths": {}, "leaks": [leak], "unjudged": []}
    content = {"duplicate_rows": 3, "shared_rows": 5, "feature_strengths": [], "risks": []}
    sentences = [part.explanation for part in TECHNIQUES["leakage"].assess(read("leakage", content), truth).parts]
    assert any("Leaks in this data: duplicate_rows. " in sentence for sentence in sentences), sentences
    fact = {"types": ["nominal", "ordinal", "cyclic"], "cardinality": 3}
    truth = {"features": {"maker": fact, "hour": {"types": ["cyclic"], "cardinality": 24}}}
    parts = TECHNIQUES["encoding"].assess(read("encoding", {"features": []}), truth).parts
    assert (
        "maker nominal or ordinal." in parts[0].explanation.replace(", ", ". ")
        and "hour cyclic" in parts[0].explanation
    )
