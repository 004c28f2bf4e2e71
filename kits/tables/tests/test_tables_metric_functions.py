"""Plain functions as metrics: of a task, and of two files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from mleredux._core.cli.root import root
from mleredux.errors import InvalidSubmission
from mleredux.plugin.grader import FormInput, Grader, GradingInput
from mleredux.plugin.task import Metric, Submission, Task
from mleredux_tables import make_grader

FILE = """
def mean_error(y_true, y_pred, sample_weight=None):
    return abs(y_true - y_pred).mean()

def share(y_true, y_pred):
    return (y_true == y_pred).mean()

def fails(y_true, y_pred):
    raise ZeroDivisionError("of no use")
"""


def mean_error(y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
    error = abs(y_true - y_pred)
    return float(error.mean() if sample_weight is None else (error * sample_weight).sum() / sample_weight.sum())


def graded(tmp_path: Path, grader: Grader, answers: str, submission: str, **options: Any) -> float:
    """The score; the same form is checked against a sample made of the answers' ids."""
    (tmp_path / "private").mkdir(exist_ok=True)
    (tmp_path / "private" / "answers.csv").write_text(answers)
    path, sample = tmp_path / "submission.csv", tmp_path / "sample.csv"
    path.write_text(submission)
    targets = tuple(name for name in submission.splitlines()[0].split(",") if name != "id")
    sample.write_text(answers)
    task = Task(
        id="t",
        title="T",
        description=path,
        submission=Submission(id_columns=("id",), target_columns=targets),
        metric=Metric(grader=grader, options=options),
        direction=grader.direction,
    )
    assert grader.check is not None
    try:
        grader.check(FormInput(path, sample, task))
    except InvalidSubmission as refused:
        with pytest.raises(InvalidSubmission, match=str(refused).replace("(", ".").replace(")", ".")):
            grader.score(GradingInput(path, tmp_path / "private", task, options))
        raise
    score = grader.score(GradingInput(path, tmp_path / "private", task, options))
    return score if isinstance(score, float) else score.value  # type: ignore[union-attr]


def test_rows_are_matched_and_weighted(tmp_path: Path) -> None:
    grader = make_grader(mean_error, direction="minimize", perfect=0.0)
    assert (grader.id, grader.direction, grader.perfect) == ("mean-error", "minimize", 0.0)
    answers = "id,y,w\n1,1,1\n2,2,3\n"
    assert graded(tmp_path, grader, answers, "id,y\n2,2\n1,3\n") == 1.0
    assert graded(tmp_path, grader, answers, "id,y\n2,2\n1,3\n", weight="w") == 0.5


@pytest.mark.parametrize(
    ("targets", "answers", "submission", "sentence"),
    [
        ("numbers", "id,y\n1,1\n2,2\n", "id,y\n1,1\n2,\n", "finite numbers"),
        ("numbers", "id,y\n1,1\n2,2\n", "id,y\n1,1\n3,2\n", "ids of the sample"),
        ("probabilities", "id,y\n1,1\n2,0\n", "id,y\n1,1.5\n2,0\n", "be 1 or less in every row"),
        ("probabilities", "id,a,b\n1,1,0\n2,0,1\n", "id,a,b\n1,1,0\n2,1,1\n", "add up to 1"),
        ("labels", "id,y\n1,1\n2,0\n", "id,y\n1,1\n2,0.5\n", "is a fraction"),
        ("labels", "id,y\n1,a\n2,b\n", "id,y\n1,1\n2,2\n", "read as numbers"),
        ("texts", "id,y\n1,a\n2,b\n", "id,y\n1,a\n2,\n", "row 2 is empty"),
    ],
)
def test_what_its_targets_are_not_is_refused_before_it_is_called(
    targets: Any, answers: str, submission: str, sentence: str, tmp_path: Path
) -> None:
    def metric(y_true: Any, y_pred: Any) -> float:
        return float(len(y_true))

    grader = make_grader(metric, direction="maximize", targets=targets)
    assert graded(tmp_path, grader, answers, answers) == 2.0
    with pytest.raises(InvalidSubmission, match=sentence):
        graded(tmp_path, grader, answers, submission)


def command(tmp_path: Path, name: str, predictions: str, answers: str, *more: str) -> Result:
    for file, text in (("metric.py", FILE), ("p.csv", predictions), ("a.csv", answers)):
        (tmp_path / file).write_text(text)
    return CliRunner().invoke(
        root, ["grade", "--metric", f"{tmp_path / name}", str(tmp_path / "p.csv"), str(tmp_path / "a.csv"), *more]
    )


def test_two_files_are_graded_by_ids_or_by_position(tmp_path: Path) -> None:
    by_id = command(tmp_path, "metric.py:mean_error", "y,id\n4,2\n1,1\n", "id,y\n1,1\n2,2\n", "--json")
    assert json.loads(by_id.output) == {"score": 1.0, "metric": "mean_error", "ids": ["id"], "rows": 2}
    by_position = command(tmp_path, "metric.py:share", "guess\na\nb\n", "label\na\nc\n")
    assert by_position.output == "score  0.5  (share, 2 rows matched by position)\n"


@pytest.mark.parametrize(
    ("name", "predictions", "sentence"),
    [
        ("none.py:f", "id,y\n1,1\n", "There is no file"),
        ("metric.py:other", "id,y\n1,1\n", "no function 'other'"),
        ("metric.py:mean_error", "id,y\n1,x\n", "must contain numbers only"),
        ("metric.py:mean_error", "a,b\n1,2\n", "no target column in common"),
        ("metric.py:fails", "id,y\n1,1\n", "of no use"),
    ],
)
def test_what_goes_wrong_is_one_sentence(name: str, predictions: str, sentence: str, tmp_path: Path) -> None:
    ended = command(tmp_path, name, predictions, "id,y\n1,1\n")
    assert ended.exit_code != 0
    assert sentence in str(ended.exception or ended.output)
