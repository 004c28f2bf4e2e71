"""Texts of all rows at once, against Python's own text methods row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mleredux.errors import InvalidSubmission
from mleredux.models import GradingInput, Metric, Submission, Task
from mleredux_graders.classification.curves import ROC_AUC
from mleredux_graders.classification.f1 import f1_multilabel
from mleredux_graders.pieces import Pieces, overlap, split_blanks, split_words
from mleredux_graders.ranking.lists import average_precisions_at_k, reciprocal_ranks
from mleredux_graders.regression.correlation import SPEARMAN
from mleredux_graders.text.strings import word_jaccard
from mleredux_tables import cells, utf8
from mleredux_tables.cells import Cells, in_blocks
from mleredux_tables.utf8 import Utf8

PARTS = ["a", "b", "B", " ", "  ", "é", "Σ", "İ", "\u2003", "\xa0", "\n", "\0", "\x1f", "\u200b", "漢字", "word" * 9]
cell = st.lists(st.sampled_from(PARTS), max_size=7).map("".join)
pairs = st.lists(st.tuples(cell, cell), max_size=6)
often = settings(max_examples=120, deadline=None)


def column(cells: list[str], arrow: bool) -> Utf8:
    """The cells as they come out of a table, in Arrow's memory or as Python's own texts."""
    return Utf8.of_column(pd.Series(cells, dtype="str" if arrow else object))


def sides(rows: list[tuple[str, str]], arrow: bool = True) -> tuple[list[str], list[str], Utf8, Utf8]:
    true, predicted = [row[0] for row in rows], [row[1] for row in rows]
    return true, predicted, column(true, arrow), column(predicted, arrow)


def as_lists(pieces: Pieces, rows: int) -> list[list[str]]:
    lists: list[list[str]] = [[] for _ in range(rows)]
    for number, row in enumerate(pieces.rows):
        assert pieces.places[number] == len(lists[row])
        lists[row].append(pieces.texts.cell(number).decode())
    return lists


@given(cells=st.lists(cell, max_size=6), arrow=st.booleans())
@often
def test_cells_are_split_as_python_splits_them(cells: list[str], arrow: bool) -> None:
    texts = column(cells, arrow)
    assert as_lists(split_blanks(texts), len(cells)) == [one.split(" ") for one in cells]
    assert as_lists(split_words(texts), len(cells)) == [one.split() for one in cells]
    assert as_lists(split_words(texts.lowered()), len(cells)) == [one.lower().split() for one in cells]


@given(cells=st.lists(cell, min_size=1, max_size=8), seed=st.integers(0, 99))
@often
def test_equal_texts_are_found(cells: list[str], seed: int) -> None:
    texts = Utf8.of_cells(cells)
    assert texts.first_equals().tolist() == [cells.index(one) for one in cells]
    these, those = np.random.default_rng(seed).integers(0, len(cells), (2, 20))
    assert texts.equal(these, those).tolist() == [cells[a] == cells[b] for a, b in zip(these, those, strict=True)]
    assert [texts.subset(these).cell(n).decode() for n in range(20)] == [cells[a] for a in these]


def test_long_texts_are_compared_to_their_ends() -> None:
    long = "x" * 5_000
    texts = Utf8.of_cells([long, long + "y", long + "z", long, "x" * 600 + "y", "x" * 600 + "z"])
    assert texts.first_equals().tolist() == [0, 1, 2, 0, 4, 5]


@given(rows=pairs)
@often
def test_hashes_that_agree_by_chance_change_nothing(rows: list[tuple[str, str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utf8, "_mixed", lambda hashes, words: np.zeros_like(words))
        check_overlap(rows)
        cells = [one for row in rows for one in row]
        assert Utf8.of_cells(cells).first_equals().tolist() == [cells.index(one) for one in cells]


@given(rows=pairs)
@often
def test_what_rows_have_in_common(rows: list[tuple[str, str]]) -> None:
    check_overlap(rows)


def check_overlap(rows: list[tuple[str, str]]) -> None:
    true, _predicted, y_true, y_pred = sides(rows)
    left, right = split_words(y_true), split_words(y_pred)
    found = overlap(left, right)
    texts = [right.texts.cell(number).decode() for number in found.predicted]
    got = list(zip(right.rows[found.predicted], texts, right.places[found.predicted], found.hits, strict=True))
    expected = [
        (row, piece, other.split().index(piece), piece in one.split())
        for row, (one, other) in enumerate(rows)
        for piece in set(other.split())
    ]
    assert sorted(got) == sorted(expected)
    assert sorted(left.rows[found.true]) == [row for row, one in enumerate(true) for _ in set(one.split())]


def average_precision(true: list[str], predicted: list[str], k: int) -> float:
    relevant, hits, total = {piece for piece in true if piece}, 0, 0.0
    for place, piece in enumerate(predicted[:k], 1):
        if piece in relevant and piece not in predicted[: place - 1]:
            hits += 1
            total += hits / place
    return total / min(len(relevant), k) if relevant else 0.0


def reciprocal_rank(true: list[str], predicted: list[str]) -> float:
    return next((1 / place for place, piece in enumerate(predicted, 1) if piece in true), 0.0)


@given(rows=st.lists(st.tuples(cell, cell), min_size=1, max_size=6), k=st.integers(1, 4), arrow=st.booleans())
@often
def test_ranked_lists(rows: list[tuple[str, str]], k: int, arrow: bool) -> None:
    _true, _predicted, y_true, y_pred = sides(rows, arrow)
    lists = [(one.split(" "), other.split(" ")) for one, other in rows]
    left, right = split_blanks(y_true), split_blanks(y_pred)
    best = right.kept(right.places < k)
    ours = average_precisions_at_k(left, best, len(rows), k)
    assert ours == pytest.approx([average_precision(*pair, k) for pair in lists], abs=1e-12)
    ranks = reciprocal_ranks(left, right, len(rows))
    assert ranks == pytest.approx([reciprocal_rank(*pair) for pair in lists], abs=1e-12)


@given(rows=st.lists(st.tuples(cell, cell), min_size=1, max_size=6), unknown=st.booleans())
@often
def test_sets_of_labels(rows: list[tuple[str, str]], unknown: bool) -> None:
    true, predicted, y_true, y_pred = sides(rows)
    wanted = {(row, piece) for row, one in enumerate(true) for piece in one.split()}
    known = {piece for _, piece in wanted}
    given_ = {(row, piece) for row, one in enumerate(predicted) for piece in one.split() if unknown or piece in known}
    total = len(wanted) + len(given_)
    expected = 2 * len(wanted & given_) / total if total else 0.0
    blocks = [(side[0].subset(part), side[1].subset(part)) for side in [(y_true, y_pred)] for part in halves(len(rows))]
    assert f1_multilabel(blocks, unknown=unknown) == pytest.approx(expected)


def halves(rows: int) -> list[Any]:
    return np.array_split(np.arange(rows), 2)


@given(rows=st.lists(st.tuples(cell, cell), min_size=1, max_size=6), arrow=st.booleans())
@often
def test_words_in_common(rows: list[tuple[str, str]], arrow: bool) -> None:
    true, predicted, y_true, y_pred = sides(rows, arrow)
    for got, one, other in zip(word_jaccard(y_true, y_pred), true, predicted, strict=True):
        a, b = set(one.lower().split()), set(other.lower().split())
        assert got == pytest.approx(len(a & b) / len(a | b) if a | b else float("nan"), nan_ok=True)


@given(rows=st.lists(st.tuples(cell, cell), min_size=1, max_size=9), seed=st.integers(0, 99), size=st.integers(1, 4))
@often
def test_blocks_hold_each_matched_row_once(rows: list[tuple[str, str]], seed: int, size: int) -> None:
    true, predicted, y_true, _ = sides(rows)
    order = np.random.default_rng(seed).permutation(len(rows))
    moved = Utf8.of_cells([predicted[row] for row in order])
    got = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "_ROWS", size)
        for here, left, right in in_blocks(Cells(y_true, np.arange(len(rows))), Cells(moved, np.argsort(order))):
            for place, row in enumerate(here.tolist()):
                got[row] = (left.cell(place).decode(), right.cell(place).decode())
    assert got == dict(enumerate(zip(true, predicted, strict=True)))


def grade(grader: Any, answers: dict[str, Any], submission: dict[str, Any], folder: Path, **options: Any) -> float:
    pd.DataFrame(answers).to_csv(folder / "answers.csv", index=False)
    pd.DataFrame(submission).to_csv(folder / "submission.csv", index=False)
    task = Task(
        id="case",
        title="Case",
        description=folder / "description.md",
        direction="maximize",
        submission=Submission(id_columns=("id",), target_columns=("y",)),
        metric=Metric(grader=grader.id, options=options),
    )
    return float(grader.score(GradingInput(folder / "submission.csv", folder, task, options)).value)


@pytest.mark.parametrize("match", ["id", "sorted", "sorted-known", "position"])
def test_negative_truth_is_dropped_however_rows_are_matched(match: str, tmp_path: Path) -> None:
    answers = {"id": [1, 2, 3, 4, 5], "y": [0, 1, -1, 1, 0]}
    submission = {"id": [1, 2, 3, 4, 5], "y": [0.1, 0.6, 0.9, 0.2, 0.3]}
    score = grade(ROC_AUC, answers, submission, tmp_path, match=match, drop_negative_truth=True)
    assert score == pytest.approx(0.75)


def test_infinite_predictions_are_ranked_only_where_anything_is(tmp_path: Path) -> None:
    answers = {"id": [1, 2, 3], "y": [1, 2, 3]}
    submission = {"id": [1, 2, 3], "y": [0.5, 0.7, float("inf")]}
    with pytest.raises(InvalidSubmission, match="finite numbers; row 3"):
        grade(SPEARMAN, answers, submission, tmp_path)
    assert grade(SPEARMAN, answers, submission, tmp_path, rank_text=True) == pytest.approx(1.0)
