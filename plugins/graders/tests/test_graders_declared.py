"""METRICS.md says what the graders take, and is true."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import mleredux_graders
import pandas as pd
import pytest
from mleredux.errors import InvalidSubmission
from mleredux.models import Grader, GradingInput, Metric, Submission, Task

LINES = re.findall(
    r"^\| (\S+) \| `(Metric\(.*\))` \| `(Submission\(.*\))` \|$",
    (Path(__file__).parents[1] / "METRICS.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def declared(metric: str, submission: str) -> tuple[Metric, Submission]:
    names = {"Metric": Metric, "Submission": Submission}
    return eval(metric, names), eval(submission, names)


def test_all_82_competitions_are_listed_once() -> None:
    assert len(LINES) == len({line[0] for line in LINES}) == 82


@pytest.mark.parametrize(("competition", "metric", "submission"), LINES, ids=[line[0] for line in LINES])
def test_a_declaration_can_be_graded(competition: str, metric: str, submission: str, tmp_path: Path) -> None:
    """Options are accepted before any file is read, so the first complaint is that there is no submission."""
    parsed, columns = declared(metric, submission)
    assert isinstance(parsed.grader, str)
    module, _, attribute = mleredux_graders.GRADERS[parsed.grader].partition(":")
    grader: Grader = getattr(importlib.import_module(f"mleredux_graders.{module}"), attribute or "GRADER")
    task = Task(
        id=competition,
        title=competition,
        description=tmp_path / "description.md",
        direction=grader.direction,
        submission=columns,
        metric=parsed,
    )
    with pytest.raises(InvalidSubmission, match="no submission file"):
        grader.score(GradingInput(tmp_path / "submission.csv", tmp_path, task, parsed.options))


ANSWERS = """{"example_id": 1, "annotations": [{"long_answer": {"start_token": 3, "end_token": 9}, "short_answers": [], "yes_no_answer": "YES"}]}
{"example_id": 2, "annotations": [{"long_answer": {"start_token": -1, "end_token": -1}, "short_answers": [{"start_token": 5, "end_token": 6}, {"start_token": 7, "end_token": 8}], "yes_no_answer": "NONE"}]}
"""  # noqa: E501 - one record a line
RIGHT = {"1_long": "3:9", "1_short": "YES", "2_long": "", "2_short": "7:8"}


def grade_answers(predictions: dict[str, object], folder: Path, **options: object) -> float:
    from mleredux_graders.answering.natural_questions_f1 import GRADER

    (folder / "test.jsonl").write_text(ANSWERS)
    frame = pd.DataFrame({"example_id": list(predictions), "PredictionString": list(predictions.values())})
    frame.to_csv(folder / "submission.csv", index=False)
    task = Task(
        id="questions",
        title="Questions",
        description=folder / "description.md",
        direction="maximize",
        submission=Submission(id_columns=("example_id",), target_columns=("PredictionString",)),
        answers="test.jsonl",
        metric=Metric(grader="natural-questions-f1"),
    )
    score = GRADER.score(GradingInput(folder / "submission.csv", folder, task, options))
    return score if isinstance(score, float) else score.value


@pytest.mark.parametrize(
    ("changed", "score"),
    [
        ({}, 1.0),
        ({"2_short": " +5 : 6 "}, 1.0),
        ({"1_long": "3:10"}, 0.75),
        ({"1_long": "YES", "2_long": "NO"}, 0.5),
        (dict.fromkeys(RIGHT), 0.25),
    ],
)
def test_answers_to_questions(changed: dict[str, object], score: float, tmp_path: Path) -> None:
    assert grade_answers({**RIGHT, **changed}, tmp_path) == score


@pytest.mark.parametrize(
    ("changed", "score"),
    [
        ({}, 1.0),
        ({"1_long": "3:10"}, 2 * 2 / (2 * 2 + 1)),
        ({"1_long": None}, 2 * 2 / (2 * 2 + 1)),
        ({"2_long": "3:10"}, 2 * 3 / (2 * 3 + 1)),
        ({"1_long": "YES", "2_long": "NO", "2_short": None}, 2 * 1 / (2 * 1 + 2 + 1)),
        (dict.fromkeys(RIGHT), 0.0),
    ],
)
def test_f1_of_answers_without_rightly_blank_rows(changed: dict[str, object], score: float, tmp_path: Path) -> None:
    """Three rows have an answer; a wrong one is a false positive, a row wrongly left blank a false negative."""
    assert grade_answers({**RIGHT, **changed}, tmp_path, blank="ignored") == pytest.approx(score)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"1_short": "yes"}, "row 2: an answer must be"),
        ({"1_short": "1:2:3"}, "row 2: an answer must be"),
        ({"1_short": "1:x"}, "row 2: an answer must be"),
        ({"3_long": ""}, "5 rows; 4"),
    ],
)
def test_answers_in_another_form_are_refused(changed: dict[str, object], said: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSubmission, match=said):
        grade_answers({**RIGHT, **changed}, tmp_path)
