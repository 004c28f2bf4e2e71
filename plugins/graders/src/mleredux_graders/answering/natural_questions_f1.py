"""Long and short answers to questions about a document: right, or rightly left blank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
from mleredux.errors import InvalidSubmission, TaskBroken
from mleredux.plugin.grader import Array, Grader, GradingInput, Options, Score, parse_options, read_table, run, texts

KINDS = ("long", "short")
Answer = str | tuple[int, int]


class QuestionOptions(Options):
    """What it takes. The answers are JSON lines with `example_id` and `annotations`, of which the first counts."""

    blank: Literal["hit", "ignored"] = "hit"
    """What a rightly blank row is: a hit, so that the score is the share of right rows; or nothing that F1 counts."""


def valid_answers(annotation: dict[str, Any]) -> dict[str, set[Answer]]:
    """All answers that are right, by kind (`long`, `short`); none where the row must be left blank."""
    long = annotation["long_answer"]
    spans = {(int(span["start_token"]), int(span["end_token"])) for span in annotation["short_answers"]}
    word = annotation["yes_no_answer"]
    return {
        "long": {(int(long["start_token"]), int(long["end_token"]))} if int(long["start_token"]) != -1 else set(),
        "short": {*spans, *({str(word)} if word != "NONE" else ())},
    }


def parse_prediction(text: str) -> Answer:
    """A span `start:end`, YES, NO, or the empty text.

    Raises:
        ValueError: It is none of them.
    """
    if text.count(":") == 1:
        start, end = text.split(":")
        return int(start), int(end)
    if text not in ("", "YES", "NO"):
        raise ValueError(text)
    return text


def _read(path: Path, task: str) -> dict[str, set[Answer]]:
    """Valid answers by row id."""
    answers: dict[str, set[Answer]] = {}
    try:
        with path.open(encoding="utf-8") as file:
            for line in filter(str.strip, file):
                record = json.loads(line)
                for kind, valid in valid_answers(record["annotations"][0]).items():
                    answers[f"{record['example_id']}_{kind}"] = valid
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise TaskBroken(
            f"The answers of task {task} in {path} can't be used ({type(error).__name__}: {error}).",
            hint="Prepare the task again.",
        ) from error
    return answers


def _score(ids: Array, cells: Array, answers: dict[str, set[Answer]], columns: tuple[str, str], *, blank: str) -> float:
    key, target = columns
    if len(ids) != len(answers):
        raise InvalidSubmission(f"The submission has {len(ids)} rows where {len(answers)} are expected.")
    if set(ids) != set(answers):
        raise InvalidSubmission(f"Column {key!r} must hold the ids of the sample, each with _long and with _short.")
    hits = predicted = missed = 0
    for row, (name, cell) in enumerate(zip(ids, cells, strict=True), start=1):
        try:
            prediction = parse_prediction(cell.strip())
        except ValueError:
            raise InvalidSubmission(
                f"Column {target!r}, row {row}: an answer must be start:end in whole numbers, YES, NO or empty."
            ) from None
        valid = answers[name]
        hits += prediction in valid
        predicted += prediction != ""
        missed += prediction == "" and bool(valid)
    if blank == "hit":
        return (hits + len(ids) - predicted - missed) / len(ids)
    counted = hits + predicted + missed
    return 2 * hits / counted if counted else 1.0


def _grade(given: GradingInput) -> Score:
    options = parse_options(QuestionOptions, given)
    (key,), (target,) = given.task.submission.id_columns, given.task.submission.target_columns
    submission = read_table(given.submission)
    submission.require((key, target))
    answers = _read(given.private / given.task.answers, given.task.id)
    ids = texts(submission[key], key, missing="blank", numbers="text")
    cells = texts(submission[target], target, missing="blank", numbers="text")
    return run(lambda: _score(np.array(ids), cells, answers, (key, target), blank=options.blank))


GRADER = Grader(
    id="natural-questions-f1",
    title="Micro F1 of answers that are right or rightly blank",
    direction="maximize",
    perfect=1.0,
    score=_grade,
)
