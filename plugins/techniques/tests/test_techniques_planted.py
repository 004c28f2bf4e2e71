"""Planted instances: known truth, another one for each seed, equal bytes for equal seeds, and nothing that tells."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mleredux._core.checksums import tree_digest
from mleredux._core.data import Prepared
from mleredux.errors import NotApplicable
from mleredux_techniques import kit
from mleredux_techniques._kit.discovery import discover
from mleredux_techniques.kit import Dataset, load, strengths
from mleredux_techniques.leakage.instances import KINDS as LEAKS
from technique_documents import TECHNIQUES

Preparer = Callable[[str], Prepared]


def plant(dataset: Dataset, technique: str, seed: int) -> Dataset:
    return kit.plant(dataset, TECHNIQUES[technique], seed)


@pytest.fixture(scope="module")
def shop(prepared: Preparer, bench: Any) -> Dataset:
    return discover(bench.task("shop"), prepared("shop").public.parent)[0]


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_equal_seeds_give_equal_bytes_and_other_seeds_other_data(technique: str, bench: Any) -> None:
    name = f"{technique}+planted-5@shop"
    first = tree_digest(bench.prepare(name).public.parent)
    assert tree_digest(bench.prepare(name, force=True).public.parent) == first
    other = bench.prepare(f"{technique}+planted-6@shop")
    assert (other.public / "train.csv").read_bytes() != (bench.prepare(name).public / "train.csv").read_bytes()


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_the_public_side_tells_nothing_of_the_kind(technique: str, bench: Any) -> None:
    texts, files = set(), set()
    for seed in (1, 2, 3, 4):
        name = f"{technique}+planted-{seed}@shop"
        prepared = bench.prepare(name)
        texts.add(bench.task(name).describe())
        files.add(tuple(sorted(path.name for path in prepared.public.iterdir())))
        assert "returned" not in pd.read_csv(prepared.public / "test.csv").columns
    assert len(texts) == 1
    assert files == {("question.json", "test.csv", "train.csv")}


def test_all_kinds_of_leaks_occur_and_are_leaks(shop: Dataset) -> None:
    met: set[str] = set()
    for seed in range(24):
        made = plant(shop, "leakage", seed)
        told = strengths(made)
        new = set(made.features) - set(shop.features)
        leaking = {column for leak in made.planted["leaks"] for column in leak["columns"]}
        assert new - leaking, "there are harmless new columns, too"
        for leak in made.planted["leaks"]:
            met.add(leak["kinds"][0])
            for column in leak["columns"]:
                assert told[column] > 0.5
                honest = max(value for name, value in told.items() if name not in leaking)
                assert told[column] > honest
    assert met == set(LEAKS)


def test_a_leaking_column_tells_nothing_in_the_test_table(shop: Dataset) -> None:
    for seed in range(12):
        made = plant(shop, "leakage", seed)
        for leak in made.planted["leaks"]:
            for column in set(leak["columns"]) - set(made.ids):
                truth = (made.test["returned"] == "1").to_numpy()
                assert abs(np.corrcoef(made.test[column].to_numpy(float), truth)[0, 1]) < 0.35


def test_mechanisms_are_as_planted(shop: Dataset) -> None:
    met: set[str] = set()
    for seed in range(8):
        made = plant(shop, "missing", seed)
        for fact in made.planted["missing"]:
            met.add(fact["mechanism"])
            gap = made.train[fact["column"]].isna().to_numpy()
            assert 0.04 < gap.mean() < 0.5
            cause = fact["depends_on"][0] if fact["mechanism"] == "MAR" else fact["column"]
            values = shop.train[cause].to_numpy(float)
            low, high = np.nanmean(values[gap]), np.nanmean(values[~gap])
            apart = abs(low - high) / np.nanstd(values)
            assert (apart > 0.4) == (fact["mechanism"] != "MCAR"), fact
    assert met == {"MCAR", "MAR", "MNAR"}


def test_groups_stay_together_and_time_progresses(shop: Dataset) -> None:
    met = set()
    for seed in range(12):
        made = plant(shop, "cv", seed)
        met.add(tuple(made.planted["kinds"]))
        assert sorted(made.train.columns) == sorted(made.test.columns)
        truth = TECHNIQUES["cv"].truth(made)
        if made.group is not None:
            assert truth["groups"]["shared_groups"] == 0
            assert made.group.of(made.train).value_counts().mean() > 2
        if made.time is not None:
            assert made.train[made.time].max() <= made.test[made.time].min()
        dates = [name for name in made.features if str(made.train[name].iloc[0]).startswith("20")]
        assert len(dates) == 2, "a date that says nothing stands beside"
    assert met == {("groups",), ("drift",), ()}


def test_classes_are_thinned_in_the_training_table_only(shop: Dataset) -> None:
    before = shop.train["returned"].value_counts().min() / len(shop.train)
    for seed in range(4):
        made = plant(shop, "imbalance", seed)
        assert len(made.train) <= len(shop.train)
        assert len(made.test) == len(shop.test)
        assert made.train["returned"].value_counts().min() >= 12
    assert before > 0


def test_categories_and_scales_are_as_planted(shop: Dataset) -> None:
    made = plant(shop, "encoding", 1)
    truth = TECHNIQUES["encoding"].truth(made)
    for item in made.planted["categories"]:
        assert truth["features"][item["column"]]["types"] == [item["type"]]
    spread = TECHNIQUES["scaling"].truth(shop)["spread"]
    assert TECHNIQUES["scaling"].truth(plant(shop, "scaling", 1))["spread"] > 10 * spread


def test_the_truth_is_private(prepared: Preparer) -> None:
    found = prepared("leakage+planted-3@shop")
    assert load(found.private).planted["leaks"]
    public = "".join(path.read_text() for path in found.public.iterdir() if path.suffix == ".json")
    assert "leaks" not in json.loads(public)


def test_too_little_to_change_is_reported(tmp_path: Path, shop: Dataset) -> None:
    texts = Dataset(
        **{**vars(shop), "features": ("city", "size"), "train": shop.train.drop(columns=["price", "weight"])}
    )
    with pytest.raises(NotApplicable, match="needs 3 numeric features"):
        plant(texts, "missing", 1)
