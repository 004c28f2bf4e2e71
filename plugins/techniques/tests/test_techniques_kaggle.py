"""Real competitions: tables with gaps, records as JSON, images beside a table, prose, repeated rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mleredux.errors import NotApplicable

pytestmark = pytest.mark.shared

NAMES = (
    "detecting-insults-in-social-commentary",
    "leaf-classification",
    "nomad2018-predict-transparent-conductors",
    "random-acts-of-pizza",
    "spaceship-titanic",
)


@pytest.fixture(scope="module")
def truth(bench: Any, shared: Path) -> Any:
    for name in NAMES:
        bench.prepare(name, source=shared / "data" / "kaggle" / name / f"{name}.zip")

    def of(name: str) -> Any:
        return json.loads((bench.prepare(name).private / "truth.json").read_bytes())

    of.table = lambda name, file: pd.read_csv(bench.prepare(name).public / file)  # type: ignore[attr-defined]
    return of


def test_every_technique_finds_its_facts_or_says_why_not(truth: Any) -> None:
    spaceship = truth("missing@spaceship-titanic")
    assert spaceship["counts"]["CryoSleep"] == 194
    assert spaceship["together"] == []
    # records of JSON: 71 requests are empty texts, and who gave is "N/A" where nobody is known to have given
    pizza = truth("missing@random-acts-of-pizza")
    assert pizza["counts"] == {"giver_username_if_known": 2670, "request_text_edit_aware": 71}
    types = truth("encoding@spaceship-titanic")["features"]
    assert types["HomePlanet"] == {"types": ["nominal", "ordinal", "cyclic"], "cardinality": 3}
    assert all(types[name]["types"][0] == "numeric" for name in ("Age", "RoomService", "FoodCourt", "Spa"))
    assert types["VIP"]["types"] == ["binary"]
    assert types["Name"]["types"] == ["identifier", "text"]
    assert truth("encoding@random-acts-of-pizza")["features"]["request_title"]["types"] == ["text"]
    assert truth("imbalance@leaf-classification")["ratio"] == pytest.approx(10 / 6)
    assert truth("cv@nomad2018-predict-transparent-conductors")["duplicate_rows"] == 939
    for name in ("encoding@leaf-classification", "scaling@detecting-insults-in-social-commentary"):
        with pytest.raises(NotApplicable):
            truth(name)


def test_known_leaks_of_real_data_are_found(truth: Any) -> None:
    pizza = truth("leakage@random-acts-of-pizza")["leaks"]
    assert [leak["columns"] for leak in pizza] == [["giver_username_if_known"]]
    nomad = truth("leakage@nomad2018-predict-transparent-conductors")["leaks"]
    assert [leak["kinds"] for leak in nomad] == [["duplicate_rows"]]
    for name in ("spaceship-titanic", "leaf-classification"):
        assert truth(f"leakage@{name}")["leaks"] == []


def test_facts_count_rows_and_not_values(truth: Any) -> None:
    split = truth("cv@random-acts-of-pizza")
    assert (split["groups"], split["time"]) == ([], None)  # days since the first post are 0 in most rows
    tells = truth("features@random-acts-of-pizza")["tells"]
    for name in ("number_of_comments_in_raop_at_request", "days_since_first_post_on_raop_at_request"):
        assert tells[f"requester_{name}"] == "alone"
    shift = truth("shift@spaceship-titanic")
    assert (shift["broken"], shift["unsure"], shift["changes"]) == ([], [], None)


def test_of_several_targets_the_first_is_scored_alone(truth: Any) -> None:
    known = truth("metric@nomad2018-predict-transparent-conductors")
    told = np.array(known["predictions"]["values"]["model"])[:, 0]
    train = truth.table("nomad2018-predict-transparent-conductors", "train.csv")
    true = train["formation_energy_ev_natom"].to_numpy()[known["predictions"]["rows"]]
    assert known["score"] == pytest.approx(np.sqrt(np.mean((np.log1p(told) - np.log1p(true)) ** 2)), rel=1e-6)
