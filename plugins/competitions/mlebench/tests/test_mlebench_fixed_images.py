"""The variants `fixed` of tasks with a file per row."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import mleredux_competition_mlebench
import pandas as pd
import pytest
from mleredux._core.plugins import current
from mleredux._core.plugins.loader import resolve
from mleredux.errors import InvalidSubmission
from mleredux.models import Competition, GradingInput

pytestmark = pytest.mark.shared

REFS = {ref.id: ref for ref in mleredux_competition_mlebench.mleredux_register_tasks()}


def prepared(competition: str, shared: Path, folder: Path) -> tuple[Competition, Competition]:
    """The published task and its corrected variant, which is prepared into the folder."""
    task: Competition = resolve(REFS[competition])
    fixed: Competition = task.variants["fixed"](task)
    assert fixed.prepare is not None
    with zipfile.ZipFile(shared / "golden" / competition / "raw.zip") as packed:
        packed.extractall(folder / "raw")
    fixed.prepare(folder / "raw", folder / "public", folder / "private")
    return task, fixed


def score(task: Competition, submission: Path, folder: Path) -> Any:
    assert isinstance(task.metric.grader, str)
    grader = current().grader(task.metric.grader)
    result = grader.score(GradingInput(submission, folder / "private", task, task.metric.options))
    return result if isinstance(result, float) else result.value


def test_no_patient_has_catheters_on_both_sides(shared: Path, tmp_path: Path) -> None:
    prepared("ranzcr-clip-catheter-line-classification", shared, tmp_path)
    train, answers = pd.read_csv(tmp_path / "public/train.csv"), pd.read_csv(tmp_path / "private/test.csv")
    assert len(train) > len(answers) > 0
    assert not set(train["PatientID"]) & set(answers["PatientID"])
    raw = pd.read_csv(tmp_path / "raw/train.csv")
    assert raw["PatientID"].duplicated().any()
    assert len(train) + len(answers) == len(raw)
    images = {path.stem for path in (tmp_path / "public/test").iterdir()}
    assert images == set(answers["StudyInstanceUID"])


def test_repeated_segments_of_a_volcano_are_refused(shared: Path, tmp_path: Path) -> None:
    published, fixed = prepared("predict-volcanic-eruptions-ingv-oe", shared, tmp_path)
    answers = pd.read_csv(tmp_path / "private/test.csv")
    guess = answers.assign(time_to_eruption=answers["time_to_eruption"] + 10)
    once, twice = tmp_path / "once.csv", tmp_path / "twice.csv"
    guess.to_csv(once, index=False)
    pd.concat([guess, guess.head(1)]).to_csv(twice, index=False)
    assert score(published, once, tmp_path) == score(fixed, once, tmp_path) == 10
    assert score(published, twice, tmp_path) == 10
    with pytest.raises(InvalidSubmission):
        score(fixed, twice, tmp_path)
