"""Facts: found in the data of any competition, and held against documents within stated tolerances."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from mleredux._core.data import Prepared
from mleredux_techniques.kit import close, example, f1, load
from technique_documents import TECHNIQUES, empty, perfect, read

Preparer = Callable[[str], Prepared]
BLIND_BOUND = 0.35


def truth_of(prepared: Prepared) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((prepared.private / "truth.json").read_bytes())
    return found


NATURAL = [name for name in TECHNIQUES if name != "debugging"]
"""Those that ask about any competition; `debugging` asks about generated scripts only."""


def facts_score(technique: str, document: Any, prepared: Prepared) -> float:
    score: float = TECHNIQUES[technique].assess(document, truth_of(prepared)).score
    return score


@pytest.mark.parametrize("technique", NATURAL)
def test_a_third_partys_competition_gets_its_technique_tasks_without_code(
    technique: str, prepared: Preparer, bench: Any
) -> None:
    found = prepared(f"{technique}@shop")
    question = json.loads((found.public / "question.json").read_bytes())
    assert question["target"] == "returned"
    assert question["ids"] == ["order"]
    assert (found.public / "train.csv").read_bytes() == (prepared("shop").public / "train.csv").read_bytes()
    assert {path.name for path in found.private.iterdir()} == {
        "dataset.json",
        "test.csv.gz",
        "train.csv.gz",
        "truth.json",
    }
    text = bench.task(f"{technique}@shop").describe()
    assert "Which orders come back?" in text
    assert example(TECHNIQUES[technique]).strip() in text
    assert f'"title": "{TECHNIQUES[technique].document.__name__}"' in text


def test_the_data_is_the_same_for_all_techniques_and_survives_saving(prepared: Preparer) -> None:
    dataset = load(prepared("cv@shop").private)
    public = pd.read_csv(prepared("shop").public / "train.csv")
    assert dataset.problem == "binary"
    assert dataset.kinds["member"] == "boolean"
    assert dataset.kinds["city"] == "text"
    assert dataset.train["price"].tolist() == public["price"].tolist()
    assert dataset.train["returned"].tolist() == public["returned"].astype(str).tolist()
    answers = pd.read_csv(prepared("shop").private / "answers.csv")
    assert dataset.test["returned"].tolist() == answers["returned"].astype(str).tolist()


def test_what_the_data_hold_is_found(prepared: Preparer) -> None:
    public = pd.read_csv(prepared("shop").public / "train.csv")
    assert truth_of(prepared("imbalance@shop"))["counts"] == public["returned"].astype(str).value_counts().to_dict()
    gaps = truth_of(prepared("missing@shop"))
    assert gaps["counts"] == {"city": public["city"].isna().sum(), "rating": public["rating"].isna().sum()}
    assert gaps["mechanisms"]["rating"]["mechanism"] == "MAR"
    assert gaps["mechanisms"]["rating"]["depends_on"] == ["price"]
    assert gaps["mechanisms"]["city"]["mechanism"] == "MCAR"
    types = {name: fact["types"][0] for name, fact in truth_of(prepared("encoding@shop"))["features"].items()}
    assert types == {
        "city": "nominal",
        "size": "nominal",  # or ordinal: whether words have an order is knowledge
        "member": "binary",
        "price": "numeric",
        "weight": "numeric",
        "visits": "numeric",
        "rating": "numeric",
    }
    split = truth_of(prepared("cv@shop"))
    assert split["duplicate_rows"] + split["shared_rows"] == 5
    assert split["groups"] == []
    assert split["time"] is None
    assert set(truth_of(prepared("scaling@shop"))["features"]) == {"price", "weight", "visits", "rating"}
    assert truth_of(prepared("leakage@shop"))["leaks"] == []


@pytest.mark.parametrize("technique", ["cv", "leakage"])
def test_the_truth_scores_all_facts_as_correct(technique: str, prepared: Preparer) -> None:
    found = prepared(f"{technique}@shop")
    assert facts_score(technique, perfect(technique, found.private), found) == 1


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_copying_the_example_gets_next_to_nothing(technique: str, prepared: Preparer) -> None:
    found = prepared(f"{technique}@shop" if technique in NATURAL else f"{technique}+planted-public-1@wine")
    assert facts_score(technique, read(technique, json.loads(example(TECHNIQUES[technique]))), found) < BLIND_BOUND


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_empty_answers_get_next_to_nothing(technique: str, prepared: Preparer) -> None:
    for name in [f"{technique}@shop"] * (technique in NATURAL) + [f"{technique}+planted-public-1@wine"]:
        found = prepared(name)
        assert facts_score(technique, read(technique, empty(technique)), found) < BLIND_BOUND


def test_listing_everything_gets_little(prepared: Preparer) -> None:
    found = prepared("leakage+planted-public-1@wine")
    dataset = load(found.private)
    listed = {
        **empty("leakage"),
        "risks": [
            {"kind": "copy", "columns": [name], "strength": 1.0, "mitigation": {"name": "drop_columns"}}
            for name in dataset.features
        ],
    }
    assert facts_score("leakage", read("leakage", listed), found) < BLIND_BOUND
    found = prepared("missing@shop")
    listed = {
        "complete_rows": 0,
        "columns": [
            {"column": name, "missing": 1, "mechanism": "MCAR", "imputation": {"name": "SimpleImputer"}}
            for name in dataset.features
        ],
        "together": [{"columns": list(dataset.features), "rows": 1}],
    }
    assert facts_score("missing", read("missing", listed), found) < BLIND_BOUND


def test_tolerances_are_what_the_description_says() -> None:
    assert [close(given, 100) for given in (100, 102, 98, 103, 110, 111)] == [1, 1, 1, 0.5, 0.5, 0]
    assert close(0, 0) == 1
    assert close(1, 0) == 0
    assert f1([], []) == 1
    assert f1(["a"], ["a", "b"]) == pytest.approx(2 / 3)


def test_no_distances_weigh_little_if_there_are_none() -> None:
    """Of prose alone, distances aren't asked: silence is right, and neither costs nor earns much."""
    truth = {"distances": {}, "broken": ["price"], "unsure": [], "changes": None, "open": [], "spread": 1.0}
    truth |= {"target": {"": 1.0}, "train": {"": 0.0}, "move": 1.0, "moved": True}
    shift = TECHNIQUES["shift"]
    silent = read("shift", {**empty("shift"), "target": 0.0})
    parts = {part.name: part for part in shift.assess(silent, truth).parts}
    assert parts["distances"].score == 1 and parts["distances"].weight < 0.01
    assert shift.assess(silent, truth).score < 0.05


def test_columns_missing_together_count_by_pairs_with_their_rows() -> None:
    names = ("a", "b", "c")
    truth = {
        "complete_rows": 50,
        "counts": dict.fromkeys(names, 20),
        "together": [["a", "b", 20], ["a", "c", 18], ["b", "c", 18]],
        "mechanisms": {
            name: {"mechanism": "MCAR", "depends_on": [], "half": ["MNAR"], "planted": False} for name in names
        },
    }
    columns = [
        {"column": name, "missing": 20, "mechanism": "MCAR", "imputation": {"name": "SimpleImputer"}} for name in names
    ]

    def score(*groups: tuple[str, int]) -> float | None:
        together = [{"columns": list(group), "rows": rows} for group, rows in groups]
        document = read("missing", {"complete_rows": 50, "columns": columns, "together": together})
        figures = TECHNIQUES["missing"].assess(document, truth).parts
        return next(figure.score for figure in figures if figure.name == "missing together")

    assert score(("abc", 18)) == 1
    assert score(("ab", 20), ("ac", 18), ("bc", 18)) == 1
    assert score(("ab", 20)) == 0.5
    assert score(("ab", 10)) == 0
    assert score(("abc", 1)) == 0
    assert score() == 0
