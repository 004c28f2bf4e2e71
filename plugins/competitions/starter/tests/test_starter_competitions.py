"""The starter competitions: deterministic bytes, a fair split, leaderboards that the thresholds follow from."""

from __future__ import annotations

import csv
import hashlib
import importlib
import math
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mleredux._core.data.medals import medals, read_leaderboard, thresholds
from mleredux._core.plugins import current
from mleredux.models import Competition, GradingInput, Score
from mleredux_competition_starter import COMPETITIONS
from mleredux_competition_starter.tables import number, shuffled, test_rows

held_out_rows = test_rows
del test_rows  # or pytest would take it for a test


def declaration(task: str) -> Competition:
    found = importlib.import_module(f"mleredux_competition_starter.{COMPETITIONS[task]}").competition
    assert isinstance(found, Competition)
    return found


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every competition, prepared: folders raw, public and private."""
    folders = {}
    for task in COMPETITIONS:
        folder = tmp_path_factory.mktemp(task)
        for name in ("raw", "public", "private"):
            (folder / name).mkdir()
        competition = declaration(task)
        assert competition.fetch and competition.prepare
        competition.fetch(folder / "raw")
        competition.prepare(folder / "raw", folder / "public", folder / "private")
        folders[task] = folder
    return folders


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def score(competition: Competition, submission: Path, private: Path) -> float:
    grader = current().grader(competition.metric.id)
    result = grader.score(GradingInput(submission, private, competition, competition.metric.options))
    return result.value if isinstance(result, Score) else float(result)


each = pytest.mark.parametrize("task", COMPETITIONS)


@each
def test_prepared_bytes_have_the_declared_checksums(task: str, prepared: dict[str, Path]) -> None:
    found = {
        part: {path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in (prepared[task] / part).iterdir()}
        for part in ("public", "private")
    }
    assert found == declaration(task).checksums


@each
def test_held_out_rows_are_in_neither_public_table_with_their_targets(task: str, prepared: dict[str, Path]) -> None:
    public, private = prepared[task] / "public", prepared[task] / "private"
    train, test, sample = (table(public / f"{name}.csv") for name in ("train", "test", "sample_submission"))
    answers = table(private / "answers.csv")
    ids = [row["id"] for row in test]
    assert ids == [row["id"] for row in answers] == [row["id"] for row in sample]
    assert len(set(ids)) == len(ids)
    assert not set(ids) & {row["id"] for row in train}
    assert set(sample[0]) == set(answers[0]) == {"id", *declaration(task).submission.target_columns}
    assert not set(answers[0]) & set(test[0]) - {"id"}
    assert 0.25 < len(test) / (len(test) + len(train)) < 0.35


@each
def test_neither_order_nor_ids_tell_where_a_row_stood_in_the_source(task: str, prepared: dict[str, Path]) -> None:
    raw = [tuple(row.values()) for row in table(prepared[task] / "raw" / "table.csv")]
    train = table(prepared[task] / "public" / "train.csv")
    places = [raw.index(tuple(row.values())[1:]) for row in train]
    rising = sum(one < other for one, other in pairwise(places))
    assert 0.4 < rising / (len(places) - 1) < 0.6


@pytest.mark.parametrize("task", ["breast-cancer", "digits", "wine"])
def test_each_class_has_the_same_share_of_the_held_out_rows(task: str, prepared: dict[str, Path]) -> None:
    rows = table(prepared[task] / "raw" / "table.csv")
    target = list(rows[0])[-1]
    everywhere = Counter(row[target] for row in rows)
    in_train = Counter(row[target] for row in table(prepared[task] / "public" / "train.csv"))
    for value, count in everywhere.items():
        assert count - in_train[value] == round(0.3 * count)


@each
def test_the_answers_score_perfectly_and_the_sample_earns_no_medal(task: str, prepared: dict[str, Path]) -> None:
    competition, private = declaration(task), prepared[task] / "private"
    perfect = 1.0 if competition.direction == "maximize" else 0.0
    assert score(competition, private / "answers.csv", private) == pytest.approx(perfect, abs=1e-9)
    sample = score(competition, prepared[task] / "public" / "sample_submission.csv", private)
    assert competition.thresholds is not None
    earned = medals(sample, competition.thresholds, competition.direction)
    assert not earned.any_medal and not earned.above_median


@each
def test_thresholds_follow_from_the_leaderboard_by_the_rule_for_medals(task: str) -> None:
    competition = declaration(task)
    assert competition.leaderboard is not None
    scores = read_leaderboard(competition.leaderboard)
    assert len(scores) >= 30
    assert scores == sorted(scores, reverse=competition.direction == "maximize")
    assert competition.thresholds == thresholds(scores)


@each
def test_the_leaderboard_spans_guesses_and_tuned_models(task: str) -> None:
    competition = declaration(task)
    assert competition.leaderboard is not None
    names = [row["model"] for row in table(competition.leaderboard)]
    assert len(set(names)) == len(names)
    assert any(name.startswith("always") for name in names)
    assert sum(name.startswith("tuned") for name in names) >= 3


@each
def test_descriptions_name_every_file_and_column_of_the_submission(task: str) -> None:
    competition = declaration(task)
    for obfuscated in (False, True):
        text = competition.describe(obfuscated=obfuscated)
        assert "train.csv" in text and "test.csv" in text and "sample_submission.csv" in text
        stem = {"wine": "cultivar_", "cell-nuclei": "worst_"}.get(task)
        columns = competition.submission.target_columns
        assert all(column in text for column in columns) or (stem is not None and f"`{stem}" in text)


@each
def test_descriptions_are_honest_about_leaderboard_and_source_and_the_obfuscated_one_is_silent(task: str) -> None:
    competition = declaration(task)
    text = competition.describe()
    assert (
        "reference models" in text
        and "make_leaderboards.py" in text
        and "is public, so the held-out rows could be looked up" in text
    )
    silent = competition.describe(obfuscated=True).lower()
    for word in ("scikit", "uci", "wisconsin", "alpaydin", competition.title.lower()):
        assert not re.search(rf"\b{word}\b", silent)


@settings(deadline=None)
@given(st.integers(0, 300), st.text(max_size=8))
def test_a_permutation_holds_every_row_once_and_is_the_same_again(count: int, salt: str) -> None:
    order = shuffled(count, salt)
    assert sorted(order) == list(range(count))
    assert shuffled(count, salt) == order


def test_the_permutation_is_that_of_the_documented_digests() -> None:
    digests = [hashlib.sha256(f"wine/1/split:{row}".encode()).hexdigest() for row in range(50)]
    assert [digests[row] for row in shuffled(50, "wine/1/split")] == sorted(digests)


@settings(deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=200), st.floats(0, 1))
def test_of_each_group_the_share_is_held_out(groups: list[str], share: float) -> None:
    held_out = Counter(groups[row] for row in held_out_rows("salt", groups, share))
    assert {group: held_out[group] for group in set(groups)} == {
        group: round(share * count) for group, count in Counter(groups).items()
    }


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back_as_they_were(value: float) -> None:
    text = number(value)
    assert float(text) == value
    assert len(text) <= len(repr(value)) or math.isclose(float(text), value)
    assert not text.endswith(".0")


def test_importing_the_plugin_imports_neither_scikit_learn_nor_pandas(python: Any) -> None:
    loaded = python(
        "import sys; from mleredux._core.plugins import current; current().task('digits'); print(*sys.modules)"
    )
    assert not {"sklearn", "pandas", "numpy"} & set(loaded.split())


@pytest.fixture
def python() -> Any:
    import subprocess
    import sys

    return lambda code: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
