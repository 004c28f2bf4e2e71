"""Options by which metrics are what the contests meant, on examples counted by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mleredux.errors import InvalidSubmission
from mleredux_graders.classification.f1 import f1_multilabel
from mleredux_graders.regression.errors import group_log_mae
from mleredux_tables.utf8 import Utf8

sys.path.insert(0, str(Path(__file__).parent))
from graders_cases import Desk

TRUE = ["a b", "c", "a", ""]
PREDICTED = ["a c", "c c", "", ""]


def block(true: list[str], predicted: list[str]) -> tuple[Utf8, Utf8]:
    return Utf8.of_cells(true), Utf8.of_cells(predicted)


def test_f1_by_rows_is_the_mean_of_what_each_row_gets() -> None:
    """The rows get 2/4, 1, 0, and 1 for having nothing where there is nothing; pooled, 4 of 7 are right."""
    assert f1_multilabel([block(TRUE, PREDICTED)], average="samples") == pytest.approx((0.5 + 1 + 0 + 1) / 4)
    assert f1_multilabel([block(TRUE, PREDICTED)]) == pytest.approx(4 / 7)


def test_f1_by_rows_does_not_depend_on_the_blocks_that_rows_come_in() -> None:
    blocks = [block(TRUE[:1], PREDICTED[:1]), block([], []), block(TRUE[1:], PREDICTED[1:])]
    assert f1_multilabel(blocks, average="samples") == pytest.approx(0.625)


@pytest.mark.parametrize(("unknown", "score"), [(False, (1 + 2 / 3) / 2), (True, (2 / 3 + 2 / 4) / 2)])
def test_f1_by_rows_counts_invented_labels_where_they_are(unknown: bool, score: float) -> None:
    """`x` occurs in no answer, `b` in that of the other row."""
    blocks = [block(["a"], ["a x"]), block(["b"], ["b a x"])]
    assert f1_multilabel(blocks, average="samples", unknown=unknown) == pytest.approx(score)


def test_f1_by_rows_is_an_option_of_the_grader(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "f1-multilabel", 0, average="samples", missing="blank")
    assert desk.grade(desk.perfect) == 1
    half = desk.perfect.assign(y=[cell if row % 2 else "" for row, cell in enumerate(desk.perfect["y"])])
    assert desk.grade(half) == pytest.approx(0.5)


def test_a_floor_keeps_groups_without_error_finite() -> None:
    y_true, y_pred, groups = np.array([1.0, 2.0, 5.0]), np.array([2.0, 5.0, 5.0]), np.array(["p", "p", "q"])
    expected = {"p": np.log(2), "q": np.log(1e-9)}
    assert group_log_mae(y_true, y_pred, groups, floor=1e-9) == pytest.approx(expected)
    assert group_log_mae(y_true, y_pred, groups) == pytest.approx({**expected, "q": -np.inf})


def test_a_floor_is_an_option_of_the_grader(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "group-log-mae", 0, floor=1e-9)
    assert desk.grade(desk.perfect) == pytest.approx(-20.72327, abs=1e-5)


def kappa_desk(folder: Path, grader: str, **options: object) -> Desk:
    desk = Desk(folder, grader, 0, **options)
    pd.DataFrame({"id": list("abcd"), "y": [0, 4, 4, 0]}).to_csv(folder / "answers.csv", index=False)
    return desk


def grades(*values: object) -> pd.DataFrame:
    return pd.DataFrame({"id": list("abcd"), "y": values})


@pytest.mark.parametrize(
    ("grader", "options"), [("quadratic-weighted-kappa", {}), ("cohen-kappa", {"weights": "quadratic"})]
)
def test_distances_on_a_scale_are_those_of_grades(grader: str, options: dict[str, object], tmp_path: Path) -> None:
    """One grade is one too low. By chance, 16·2·1/4 + 9·2·1/4 + 16·2·2/4 + 1·2·1/4 = 29 are expected.

    Without the scale, 1 and 2 don't exist: 0, 3 and 4 are neighbours, and 2 + 1/2 + 4 + 1/2 = 7 are expected.
    """
    desk = kappa_desk(tmp_path, grader, scale=[0, 4], **options)
    assert desk.grade(grades(0, 4, 3, 0)) == pytest.approx(1 - 1 / 29)
    assert desk.grade(grades(0.0, 4.0, 3.0, 0.0)) == pytest.approx(1 - 1 / 29)
    assert kappa_desk(tmp_path, grader, **options).grade(grades(0, 4, 3, 0)) == pytest.approx(1 - 1 / 7)


@pytest.mark.parametrize("stray", [9, 5, -1, 3.5, "", "good"])
def test_what_is_no_grade_of_the_scale_is_refused(stray: object, tmp_path: Path) -> None:
    desk = kappa_desk(tmp_path, "quadratic-weighted-kappa", scale=[0, 4])
    with pytest.raises(InvalidSubmission, match=r"^Column 'y' .*\.$"):
        desk.grade(grades(0, 4, stray, 0))
