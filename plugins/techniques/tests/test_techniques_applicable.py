"""A technique that does not apply to a task is a clear error with the reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.data import Prepared
from mleredux.errors import NotApplicable, NotFound
from mleredux.models import GradingInput
from mleredux_techniques.kit import score
from technique_documents import TECHNIQUES, perfect


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("encoding@digits", "its category is Image Classification"),
        ("missing@aerial-cactus-identification", "its category is Image Classification"),
        ("imbalance@diabetes", "rmse is a regression metric"),
        ("cv@imbalance@wine", "wine"),
    ],
)
def test_the_declaration_is_checked_before_anything_is_prepared(name: str, why: str, bench: Any) -> None:
    with pytest.raises((NotApplicable, NotFound), match=why):
        bench.task(name)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("encoding@wine", "all features of its tables are numbers"),
        ("encoding@photos", "its tables have no features"),
        ("scaling@photos", "no numeric feature"),
        ("missing@wine", "no feature of its training table has missing values"),
        ("eda@photos", "its tables have no features in common"),
        ("metric@photos", "its tables have no features in common"),
        ("ensembling@photos", "its tables have no features in common"),
        ("shift@photos", "its tables have no features in common"),
    ],
)
def test_the_data_is_checked_when_it_is_prepared(name: str, why: str, prepared: Callable[[str], Prepared]) -> None:
    with pytest.raises(NotApplicable, match=why):
        prepared(name)


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_a_table_without_features_is_prepared_or_refused(technique: str, prepared: Callable[[str], Prepared]) -> None:
    try:
        task = prepared(f"{technique}@photos")
    except (NotApplicable, NotFound) as error:
        assert "does not apply to photos" in error.message
    else:
        assert perfect(technique, task.private)


def test_planted_instances_are_there_where_the_data_as_they_are_have_nothing(
    prepared: Callable[[str], Prepared],
) -> None:
    for name in ("encoding+planted-public-1@wine", "missing+planted-public-1@wine"):
        assert (prepared(name).public / "train.csv").is_file()


@pytest.mark.parametrize("variant", ["planted", "planted--1", "planted-01", "planted-x", "planted-public", "fixed"])
def test_other_variants_are_not_known(variant: str, bench: Any) -> None:
    with pytest.raises(NotFound, match="has no variant"):
        bench.task(f"cv+{variant}@wine")


def test_pictures_have_classes_and_splits_all_the_same(prepared: Callable[[str], Prepared], bench: Any) -> None:
    found = prepared("imbalance@photos")
    truth = json.loads((found.private / "truth.json").read_bytes())
    assert truth["counts"] == {"cup": 53, "pot": 4, "jug": 3}
    assert (found.public / "p001.png").is_file()
    document = perfect("imbalance", found.private)
    given = GradingInput(Path("imbalance_analysis.json"), found.private, bench.task("imbalance@photos"))
    graded = score(TECHNIQUES["imbalance"], document, given)
    assert graded.value == 0.5  # nothing but counts can be scored
    assert graded.details["efficacy"]["score"] is None  # there is nothing to train on
    split = json.loads((prepared("cv@photos").private / "truth.json").read_bytes())
    assert (split["train_rows"], split["test_rows"], split["smallest_class"]) == (60, 30, 3)
