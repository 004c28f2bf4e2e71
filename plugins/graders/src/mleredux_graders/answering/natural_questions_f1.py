"""Long and short answers to questions about a document: correct, or correctly left blank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from mleredux.errors import InvalidSubmission, TaskBroken, one_line
from mleredux.models.formats import counted
from mleredux.plugin.grader import FormInput, Grader, GradingInput, Score
from mleredux.plugin.task import Task
from mleredux_tables import Options, Table, parse_options, read_table, run, texts

KINDS = ("long", "short")
Answer = str | tuple[int, int]


class QuestionOptions(Options):
    """Options of the metric. Answers are JSON lines with `example_id` and `annotations`, of which the first counts."""

    blank: Literal["hit", "ignored"] = "hit"
    """Whether a correctly blank row counts as a hit, so that the score is the share of correct rows, or is ignored by
    F1.
    """


def valid_answers(annotation: dict[str, Any]) -> dict[str, set[Answer]]:
    """Return all correct answers by kind (`long`, `short`); none if the row must be left blank."""
    long = annotation["long_answer"]
    spans = {(int(span["start_token"]), int(span["end_token"])) for span in annotation["short_answers"]}
    word = annotation["yes_no_answer"]
    return {
        "long": {(int(long["start_token"]), int(long["end_token"]))} if int(long["start_token"]) != -1 else set(),
        "short": {*spans, *({str(word)} if word != "NONE" else ())},
    }


def parse_prediction(text: str) -> Answer:
    """Parse a span `start:end`, YES, NO, or an empty string.

    Raises:
        ValueError: The text is none of these.
    """
    if text.count(":") == 1:
        start, end = text.split(":")
        return int(start), int(end)
    if text not in ("", "YES", "NO"):
        raise ValueError(text)
    return text


def _read(path: Path, task: str) -> dict[str, set[Answer]]:
    """Return valid answers by row id."""
    answers: dict[str, set[Answer]] = {}
    try:
        with path.open(encoding="utf-8") as file:
            for line in filter(str.strip, file):
                record = json.loads(line)
                for kind, valid in valid_answers(record["annotations"][0]).items():
                    answers[f"{record['example_id']}_{kind}"] = valid
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise TaskBroken(
            f"The answers of task {task} in {path} can't be used ({one_line(error)}).",
            hint="Prepare the task again.",
        ) from error
    return answers


def _predictions(submission: Table, task: Task, expected: set[str]) -> dict[str, Answer]:
    """Return predictions by row id.

    Raises:
        InvalidSubmission: Ids differ from the expected ones, or a prediction is not valid.
    """
    (key,), (target,) = task.submission.id_columns, task.submission.target_columns
    submission.require((key, target))
    ids = texts(submission[key], key, missing="blank", numbers="text")
    cells = texts(submission[target], target, missing="blank", numbers="text")
    if len(ids) != len(expected):
        raise InvalidSubmission(f"The submission has {counted(len(ids), 'row')}; {len(expected):,} are expected.")
    if set(ids) != expected:
        raise InvalidSubmission(f"Column {key!r} must contain the ids of the sample, each with _long and with _short.")
    predictions = {}
    for row, (name, cell) in enumerate(zip(ids, cells, strict=True), start=1):
        try:
            predictions[name] = parse_prediction(cell.strip())
        except ValueError:
            raise InvalidSubmission(
                f"Column {target!r}, row {row}: an answer must be start:end in whole numbers, YES, NO or empty."
            ) from None
    return predictions


def _score(predictions: dict[str, Answer], answers: dict[str, set[Answer]], *, blank: str) -> float:
    hits = sum(prediction in answers[name] for name, prediction in predictions.items())
    predicted = sum(prediction != "" for prediction in predictions.values())
    missed = sum(prediction == "" and bool(answers[name]) for name, prediction in predictions.items())
    if blank == "hit":
        return (hits + len(answers) - predicted - missed) / len(answers)
    counted = hits + predicted + missed
    return 2 * hits / counted if counted else 1.0


def _grade(grading: GradingInput) -> Score:
    options = parse_options(QuestionOptions, grading.task, grading.options)
    submission = read_table(grading.submission)
    answers = _read(grading.private / grading.task.answers, grading.task.id)
    return run(lambda: _score(_predictions(submission, grading.task, set(answers)), answers, blank=options.blank))


def _check(form: FormInput) -> None:
    (key,) = form.task.submission.id_columns
    submission = read_table(form.submission)
    ids = texts(read_table(form.reference)[key], key, numbers="text")
    run(lambda: float(len(_predictions(submission, form.task, set(ids)))))


GRADER = Grader(
    id="natural-questions-f1",
    title="Micro F1 over correct answers and correctly blank ones",
    direction="maximize",
    perfect=1.0,
    score=_grade,
    check=_check,
)
