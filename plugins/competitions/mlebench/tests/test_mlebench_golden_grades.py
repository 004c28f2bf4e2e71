"""Every declared competition gives the golden submissions the published score, to 1e-9, or none."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mleredux_competition_mlebench
import pytest
from mleredux._core.plugins import current
from mleredux._core.plugins.loader import resolve
from mleredux._core.stages.grade import make_report
from mleredux.errors import DataError, InvalidSubmission
from mleredux.models import GradingInput, Task

REFS = {ref.id: ref for ref in mleredux_competition_mlebench.mleredux_register_tasks()}


def grade(task: Task, submission: Path, private: Path) -> float | None:
    """The unrounded score, or None for a refusal."""
    grader = task.metric.grader
    if isinstance(grader, str):
        grader = current().grader(grader)
    try:
        score = grader.score(GradingInput(submission, private, task, task.metric.options))
    except InvalidSubmission as refusal:
        assert refusal.message.endswith(".") and "\n" not in refusal.message
        assert "can't handle" not in refusal.message, f"a check is missing: {refusal.message}"
        return None
    return score if isinstance(score, float) else score.value


def published(expected: dict[str, Any]) -> float | None:
    """The published score; None where it was refused or ended in an error."""
    if expected["outcome"].startswith(("refused", "error")):
        return None
    value = expected["score"] if expected["unrounded"] is None else expected["unrounded"]
    return math.nan if value is None else float(value)


def agrees(score: float | None, expected: dict[str, Any], task: Task) -> bool:
    wanted = published(expected)
    if score is None or wanted is None:
        return score is wanted
    if expected["unrounded"] is None and math.isfinite(wanted):
        # Where the last digits depend on the machine, only the rounded score is given.
        score = make_report(task, score, path="", exists=True).score or 0.0
    elif math.isfinite(wanted):
        assert make_report(task, wanted, path="", exists=True).score == expected["score"]
    return (
        score == wanted
        or (math.isnan(score) and math.isnan(wanted))
        or math.isclose(score, wanted, rel_tol=1e-9, abs_tol=1e-9)
    )


@pytest.mark.shared
@pytest.mark.parametrize("competition", sorted(REFS))
def test_a_debug_sample_asks_for_few_rows_and_grades_them(
    competition: str, shared: Path, golden_case: Callable[[Path], Path], tmp_path: Path
) -> None:
    task = current().task(f"{competition}+debug-3")
    whole, public, private = golden_case(shared / "golden" / competition) / "prepared", tmp_path / "1", tmp_path / "2"
    try:
        task.prepare(whole, public, private)
    except DataError as error:
        assert "can't be sampled: it has no table" in str(error)
        return
    sample = public / str(task.submission.sample)
    with sample.open(newline="", encoding="utf-8") as file:
        asked = len(list(csv.reader(file))) - 1
    assert asked <= 3
    grade(task, sample, private)


@pytest.mark.shared
@pytest.mark.parametrize("competition", sorted(REFS))
def test_gives_the_published_scores(competition: str, shared: Path, golden_case: Callable[[Path], Path]) -> None:
    golden = shared / "golden" / competition
    expected = json.loads((golden / "expected.json").read_text())
    task = resolve(REFS[competition])
    private = golden_case(golden) / "prepared" / "private"
    wrong = {}
    for name, submission in expected["submissions"].items():
        if name not in (expected.get("unstable_submissions") or ()):
            score = grade(task, golden / submission["file"], private)
            if not agrees(score, submission, task):
                wrong[name] = (score, submission["outcome"], submission["unrounded"])
    assert not wrong
