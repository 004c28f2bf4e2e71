"""Medals follow Kaggle's table, and agree with every published threshold."""

from __future__ import annotations

import csv
import gzip
import lzma
import math
import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux._core.data.medals import Medals, medal_ranks, medals, percentile, read_leaderboard, thresholds
from mleredux.errors import DataError
from mleredux.models import Thresholds

scores_of_a_board = st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=300)
directions = st.sampled_from(["maximize", "minimize"])


@pytest.mark.parametrize(
    ("teams", "ranks"),
    [
        (1, (1, 1, 1)),
        (19, (1, 3, 7)),
        (99, (9, 19, 39)),
        (100, (10, 20, 40)),
        (249, (10, 49, 99)),
        (250, (10, 50, 100)),
        (999, (11, 50, 100)),
        (1000, (12, 50, 100)),
        (4539, (19, 226, 453)),
    ],
)
def test_ranks_follow_the_table_with_fractions_cut_off(teams: int, ranks: tuple[int, int, int]) -> None:
    assert medal_ranks(teams) == ranks


def test_a_board_without_teams_has_no_ranks() -> None:
    with pytest.raises(ValueError, match="at least one team"):
        medal_ranks(0)


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (0.95, Medals(gold_medal=True, above_median=True)),
        (0.9, Medals(gold_medal=True, above_median=True)),
        (0.85, Medals(silver_medal=True, above_median=True)),
        (0.7, Medals(bronze_medal=True, above_median=True)),
        (0.65, Medals(above_median=True)),
        (0.6, Medals()),
        (math.nan, Medals()),
        (None, Medals()),
        (math.inf, Medals(gold_medal=True, above_median=True)),
        (-math.inf, Medals()),
    ],
)
def test_medals_are_earned_at_the_threshold_and_the_median_only_beyond_it(
    score: float | None, expected: Medals
) -> None:
    limits = Thresholds(gold=0.9, silver=0.8, bronze=0.7, median=0.6)
    assert medals(score, limits, "maximize") == expected
    mirrored = Thresholds(gold=-0.9, silver=-0.8, bronze=-0.7, median=-0.6)
    assert medals(None if score is None else -score, mirrored, "minimize") == expected


def test_the_best_medal_counts_where_thresholds_coincide() -> None:
    same = Thresholds(gold=1.0, silver=1.0, bronze=1.0, median=0.9991)
    assert medals(1.0, same, "maximize") == Medals(gold_medal=True, above_median=True)
    assert not medals(0.9999, same, "maximize").any_medal


@given(scores_of_a_board, directions)
def test_the_winner_of_a_board_earns_gold_and_is_at_100_percent(scores: list[float], direction: str) -> None:
    best_first = sorted(scores, reverse=direction == "maximize")
    limits = thresholds(best_first)
    assert medals(best_first[0], limits, direction).gold_medal
    assert percentile(best_first[0], scores, direction) == 100
    assert limits.median == statistics.median(scores)


@given(scores_of_a_board, st.floats(allow_nan=False), directions)
def test_the_percentile_counts_entries_beaten_or_equalled(scores: list[float], score: float, direction: str) -> None:
    reached = sum(entry <= score if direction == "maximize" else entry >= score for entry in scores)
    assert percentile(score, scores, direction) == 100 * reached / len(scores)


def test_without_a_score_there_is_no_percentile() -> None:
    assert percentile(None, [1.0], "maximize") is None
    assert percentile(math.nan, [1.0], "maximize") is None
    assert percentile(1.0, [], "maximize") is None


def test_leaderboards_are_read_plain_and_compressed(tmp_path: Path) -> None:
    text = "rank,score\n1,0.9232\n2,1e-1\n"
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "a.csv.xz").write_bytes(lzma.compress(text.encode()))
    for path in tmp_path.iterdir():
        assert read_leaderboard(path) == [0.9232, 0.1]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"rank,points\n1,2\n", "no column `score`"),
        ("a.csv", b"score\n", "no entries"),
        ("a.csv", b"", "no column `score`"),
        ("a.csv", b"score\n1\nbest\n", "line 3"),
        ("a.csv", b"score\nnan\n", "line 2"),
        ("a.csv", b"rank,score\n1\n", "line 2"),
        ("a.csv", "score\n1\n".encode("utf-16"), "can't be read"),
        ("a.csv.gz", b"score\n1\n", "can't be read"),
        ("a.csv.xz", lzma.compress(b"score\n1\n")[:-9], "can't be read"),
    ],
)
def test_a_damaged_leaderboard_is_one_clear_error(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_leaderboard(path)


def test_a_leaderboard_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="can't be read"):
        read_leaderboard(tmp_path / "none.csv")


@pytest.mark.shared
def test_thresholds_of_all_published_leaderboards_come_out(shared: Path) -> None:
    with (shared / "facts" / "thresholds.csv").open(newline="") as file:
        published = list(csv.DictReader(file))
    assert len(published) == 82
    for row in published:
        scores = read_leaderboard(shared / "facts" / "leaderboards" / f"{row['competition_id']}.csv")
        assert len(scores) == int(row["num_teams"])
        expected = {key: float(row[key]) for key in ("gold", "silver", "bronze", "median")}
        assert thresholds(scores).model_dump() == pytest.approx(expected, abs=1e-12), row["competition_id"]
