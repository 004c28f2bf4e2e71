"""Options that mend a published metric, on examples worked out by hand."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import mleredux_graders
import pandas as pd
import pytest
from mleredux.errors import InvalidSubmission
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
    module = importlib.import_module(f"mleredux_graders.{mleredux_graders.GRADERS[grader]}")
    used: Grader = module.GRADER
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
    with pytest.raises(InvalidSubmission, match=r"row 2: there are 3 points, where a page may have 2\."):
        grade("located-f1", answers, empty, tmp_path, **options)
    with pytest.raises(InvalidSubmission, match=r"row 1: there are 3 points"):
        grade("located-f1", answers, cells(a="X 5 5 X 5 5 X 5 5", b=""), tmp_path, **options)


CAR, BUS = "0 0 0 2 4 2 0 car", "50 0 0 3 9 3 0 bus"


@pytest.mark.parametrize(
    ("predicted", "published", "mended"),
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
    predicted: str, published: float, mended: float, tmp_path: Path
) -> None:
    answers, submission = cells(a=f"1 {CAR}", b=f"1 {BUS}"), cells(a=predicted, b=f"1 {BUS}")
    assert grade("map-boxes-3d", answers, submission, tmp_path) == pytest.approx((published + 1) / 2)
    score = grade("map-boxes-3d", answers, submission, tmp_path, absent_classes_count=True)
    assert score == pytest.approx((mended + 1) / 2)


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
    ("predicted", "published", "mended"),
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
    predicted: list[str], published: float, mended: float, tmp_path: Path
) -> None:
    weights = {"dice_weight": 0, "hausdorff_weight": 1, "missing": "blank", "height": "height", "width": "width"}
    submission = ORGANS[["id", "class"]].assign(y=predicted)
    for order in (submission, submission[::-1]):
        score = grade("dice-hausdorff", ORGANS, order, tmp_path, ("id", "class"), **weights)
        assert 1 - score == pytest.approx(published)
        score = grade("dice-hausdorff", ORGANS, order, tmp_path, ("id", "class"), classes="class", **weights)
        assert 1 - score == pytest.approx(mended)
