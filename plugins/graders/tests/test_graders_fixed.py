"""Options that fix a published metric, on examples worked out by hand."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import mleredux_graders
import pandas as pd
import pytest
from mleredux.errors import InvalidSubmission, MlereduxError
from mleredux.models import Grader, GradingInput, Metric, Submission, Task


def grade(
    grader: str,
    answers: pd.DataFrame,
    submission: pd.DataFrame,
    folder: Path,
    ids: tuple[str, ...] = ("id",),
    **options: Any,
) -> float:
    """The score of the column `y`."""
    module, _, attribute = mleredux_graders.GRADERS[grader].partition(":")
    used: Grader = getattr(importlib.import_module(f"mleredux_graders.{module}"), attribute or "GRADER")
    answers.to_csv(folder / "answers.csv", index=False)
    submission.to_csv(folder / "submission.csv", index=False)
    task = Task(
        id="example",
        title="Example",
        description=folder / "description.md",
        direction=used.direction,
        submission=Submission(id_columns=ids, target_columns=("y",)),
        answers="answers.csv",
        metric=Metric(grader=grader),
    )
    score = used.score(GradingInput(folder / "submission.csv", folder, task, options))
    return score if isinstance(score, float) else score.value


def cells(**rows: str) -> pd.DataFrame:
    return pd.DataFrame({"id": list(rows), "y": list(rows.values())})


def test_pages_with_too_many_points_are_refused(tmp_path: Path) -> None:
    answers = cells(a="X 0 0 9 9 X 20 20 9 9", b="")
    full, empty = cells(a="X 5 5 X 25 25", b=""), cells(a="X 5 5", b="X 1 1 X 1 1 X 1 1")
    options = {"missing": "blank", "most_points": 2}
    assert grade("located-f1", answers, full, tmp_path, **options) == 1
    assert grade("located-f1", answers, empty, tmp_path, missing="blank") == pytest.approx(2 * 1 / (4 + 2))
    with pytest.raises(InvalidSubmission, match=r"row 2: there are 3 points; a page may have at most 2\."):
        grade("located-f1", answers, empty, tmp_path, **options)
    with pytest.raises(InvalidSubmission, match=r"row 1: there are 3 points"):
        grade("located-f1", answers, cells(a="X 5 5 X 5 5 X 5 5", b=""), tmp_path, **options)


CAR, BUS = "0 0 0 2 4 2 0 car", "50 0 0 3 9 3 0 bus"


@pytest.mark.parametrize(
    ("predicted", "published", "fixed"),
    [
        (f"1 {CAR}", 1, 1),
        (f"1 {CAR} 0.1 {BUS}", 1, 0.5),  # car 1, bus 0
        (f"1 {CAR} 0.1 {BUS} 0.1 {BUS}", 1, 0.5),
        (f"1 {CAR} 0.1 {BUS} 0.1 90 0 0 1 1 1 0 moose", 1, 1 / 3),
        (f"1 {BUS}", 0, 0),
        ("", 0, 0),
    ],
)
def test_boxes_of_absent_classes_are_false_positives(
    predicted: str, published: float, fixed: float, tmp_path: Path
) -> None:
    answers, submission = cells(a=f"1 {CAR}", b=f"1 {BUS}"), cells(a=predicted, b=f"1 {BUS}")
    assert grade("map-boxes-3d", answers, submission, tmp_path) == pytest.approx((published + 1) / 2)
    score = grade("map-boxes-3d", answers, submission, tmp_path, absent_classes_count=True)
    assert score == pytest.approx((fixed + 1) / 2)


ORGANS = pd.DataFrame(
    {
        "id": ["case1_slice_1", "case1_slice_1", "case1_slice_2", "case1_slice_2", "case2_slice_1", "case2_slice_1"],
        "class": ["liver", "spleen"] * 3,
        "y": ["1 1", "16 1", "", "", "6 1", ""],
        "height": 4,
        "width": 4,
    }
)
"""Pictures of 4 by 4 pixels: 1 is the first of them, 16 the last, 6 the second of the second column."""


@pytest.mark.parametrize(
    ("predicted", "published", "fixed"),
    [
        (["1 1", "16 1", "", "", "6 1", ""], 0, 0),
        # Organs confused: both are three quarters of the height and of the width away; case2 is right.
        (["16 1", "1 1", "", "", "6 1", ""], 0, (2 * (2 * 0.75**2 / 3) ** 0.5 + 0) / 3),
        # A spleen where there is none: joined, the masks of case2 are equal; by organ, it is as far as can be.
        (["1 1", "16 1", "", "", "6 1", "6 1"], 0, (0 + 0 + 0 + 1) / 4),
        # The liver of case1 is one slice of two too deep: half the depth.
        (["", "16 1", "1 1", "", "6 1", ""], (0.5 / 3**0.5 + 0) / 2, (0.5 / 3**0.5 + 0 + 0) / 3),
    ],
)
def test_each_organ_has_a_distance_of_its_own(
    predicted: list[str], published: float, fixed: float, tmp_path: Path
) -> None:
    weights = {"dice_weight": 0, "hausdorff_weight": 1, "missing": "blank", "height": "height", "width": "width"}
    submission = ORGANS[["id", "class"]].assign(y=predicted)
    for order in (submission, submission[::-1]):
        score = grade("dice-hausdorff", ORGANS, order, tmp_path, ("id", "class"), **weights)
        assert 1 - score == pytest.approx(published)
        score = grade("dice-hausdorff", ORGANS, order, tmp_path, ("id", "class"), classes="class", **weights)
        assert 1 - score == pytest.approx(fixed)


FOUND, WRONG, SECOND = "0 0 10 10", "100 100 110 110", "20 20 30 30"
VOC = [
    # Both found, and nothing else.
    ([(0.9, FOUND), (0.8, SECOND)], 1),
    # Nothing found: there is no base rate.
    ([], 0),
    ([(0.9, WRONG)], 0),
    # One of two found: recall one half, at precision 1.
    ([(0.9, FOUND)], 1 / 2),
    # Right, wrong, right: precision 1 up to recall one half, then 2/3.
    ([(0.9, FOUND), (0.8, WRONG), (0.7, SECOND)], 1 / 2 * 1 + 1 / 2 * 2 / 3),
    # Wrong, right, right: precision 1/2, then 2/3, and so 2/3 throughout.
    ([(0.9, WRONG), (0.8, FOUND), (0.7, SECOND)], 2 / 3),
    # All of one confidence are one point: recall 1 at precision 2/3.
    ([(0.5, FOUND), (0.5, SECOND), (0.5, WRONG)], 2 / 3),
    # The second to find a box is wrong; negative confidences rank like others.
    ([(-1, FOUND), (-2, "0 0 10 9"), (-3, SECOND)], 1 / 2 + 1 / 2 * 2 / 3),
    # An overlap of exactly the threshold is none.
    ([(0.9, "0 0 10 5"), (0.8, SECOND)], 1 / 2 * 1 / 2),
]
"""Predictions where two boxes are true, and their average precision by PASCAL VOC 2010, at an IoU above 0.5."""


def predicted_as(name: str, boxes: list[tuple[float, str]]) -> str:
    return " ".join(f"{name} {confidence} {box}" for confidence, box in boxes)


@pytest.mark.parametrize(("predicted", "expected"), VOC)
def test_average_precision_of_named_boxes_is_pascal_vocs(
    predicted: list[tuple[float, str]], expected: float, tmp_path: Path
) -> None:
    """A row without true boxes, and another class that is right, stand beside."""
    truth = predicted_as("opacity", [(1, FOUND), (1, SECOND)])
    answers = cells(a=truth, b="none 1 0 0 1 1", c="none 1 0 0 1 1")
    submission = cells(
        a=predicted_as("opacity", predicted) or "none -9 0 0 1 1", b="none 1 0 0 1 1", c="none 1 0 0 1 1"
    )
    for order in (submission, submission[::-1]):
        score = grade("average-precision-boxes", answers, order, tmp_path, pascal_voc=True)
        assert score == pytest.approx((expected + 1) / 2)


@pytest.mark.parametrize(("predicted", "expected"), VOC)
def test_average_precision_of_numbered_boxes_is_pascal_vocs(
    predicted: list[tuple[float, str]], expected: float, tmp_path: Path
) -> None:
    corners = [[3, 0, 0, 10, 10], [3, 20, 20, 30, 30], [14, 0, 0, 1, 1]]
    columns = ["class_id", "x_min", "y_min", "x_max", "y_max"]
    answers = pd.DataFrame(corners, columns=columns).assign(id=["a", "a", "b"])
    submission = cells(a=predicted_as("3", predicted) or "14 -9 0 0 1 1", b="14 1 0 0 1 1")
    for order in (submission, submission[::-1]):
        score = grade("coco-map", answers, order, tmp_path, iou=[0.5], pascal_voc=True)
        assert score == pytest.approx((expected + 1) / 2)


def test_published_average_precision_gives_missed_boxes_a_base_rate(tmp_path: Path) -> None:
    answers = cells(a=f"opacity 1 {FOUND}", b="none 1 0 0 1 1")
    nothing = cells(a="none -9 0 0 1 1", b="none -9 0 0 1 1")
    assert grade("average-precision-boxes", answers, nothing, tmp_path) > 0.4
    assert grade("average-precision-boxes", answers, nothing, tmp_path, pascal_voc=True) == pytest.approx(1 / 2 * 1 / 2)


@pytest.mark.parametrize("size", ["1e100", "1e150", "1e200", "1e308"])
def test_boxes_of_absurd_size_overlap_nothing(size: str, tmp_path: Path) -> None:
    answers = cells(a=f"1 {CAR}")
    absurd = cells(a=f"0.9 1 1 0 {size} {size} {size} 0.7 car")
    assert grade("map-boxes-3d", answers, absurd, tmp_path) == 0


@pytest.mark.parametrize(
    ("grader", "library", "answers", "submission"),
    [
        ("map-boxes-3d", "shapely", cells(a=f"1 {CAR}"), cells(a=f"0.9 {CAR}")),
        (
            "coco-map",
            "faster_coco_eval",
            pd.DataFrame({"id": ["a"], "class_id": [3], "x_min": [0], "y_min": [0], "x_max": [9], "y_max": [9]}),
            cells(a="3 0.9 0 0 9 9"),
        ),
    ],
)
def test_a_missing_library_is_one_sentence(
    grader: str,
    library: str,
    answers: pd.DataFrame,
    submission: pd.DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert grade(grader, answers, submission, tmp_path) == 1
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MlereduxError, match=r"pip install 'mleredux-graders\[detection\]'"):
        grade(grader, answers, submission, tmp_path)


def test_more_than_100_boxes_of_an_image_count_in_pascal_voc(tmp_path: Path) -> None:
    answers = pd.DataFrame({"id": ["a"], "class_id": [3], "x_min": [0], "y_min": [0], "x_max": [9], "y_max": [9]})
    crowd = cells(a=predicted_as("3", [(0.9, WRONG)] * 100 + [(0.8, "0 0 9 9")]))
    assert grade("coco-map", answers, crowd, tmp_path, iou=[0.4]) == 0
    assert grade("coco-map", answers, crowd, tmp_path, iou=[0.4], pascal_voc=True) == pytest.approx(1 / 101)


@pytest.mark.parametrize("confidence", ["nan", "inf"])
def test_confidences_that_can_not_be_ranked_are_refused_by_pascal_voc(confidence: str, tmp_path: Path) -> None:
    answers = pd.DataFrame({"id": ["a"], "class_id": [3], "x_min": [0], "y_min": [0], "x_max": [9], "y_max": [9]})
    with pytest.raises(InvalidSubmission, match="a confidence is missing or infinite"):
        grade("coco-map", answers, cells(a=f"3 {confidence} 0 0 9 9"), tmp_path, iou=[0.4], pascal_voc=True)
