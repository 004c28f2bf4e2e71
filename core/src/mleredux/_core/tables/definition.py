"""From a metric to a grader: options, files, columns and rows are dealt with here, once for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError

from mleredux._core.models import Grader, GradingInput, Score
from mleredux._core.models.grader import Direction
from mleredux._core.tables.columns import numbers
from mleredux._core.tables.matching import Rows, match_rows, scored_rows
from mleredux._core.tables.options import Options
from mleredux._core.tables.table import Table, read_table
from mleredux.errors import InvalidSubmission, TaskBroken

OptionsT = TypeVar("OptionsT", bound=Options)

UNEXPECTED = "The submission holds values that the metric can't handle"
"""Starts the sentence for what no check foresaw; a grader that ever says it lacks a check."""


def define(
    id: str,
    title: str,
    direction: Direction,
    score: Callable[[Rows, OptionsT], float | Score],
    *,
    options: type[OptionsT],
    perfect: float | None,
    matching: bool = True,
    drop: Callable[[Table, OptionsT, tuple[str, ...]], Any] | None = None,
) -> Grader:
    """Make a grader from a metric on matched rows.

    Args:
        score: Gets the matched rows and the options; raises `InvalidSubmission`.
        options: The model of the options it takes.
        perfect: The best possible value.
        matching: Whether rows are matched; otherwise `score` gets the two tables, and no rows.
        drop: Says which rows of the answers are not scored, beside those that `where` leaves out.
    """

    def grade(given: GradingInput) -> Score:
        chosen = parse_options(options, given)
        submission = read_table(given.submission)
        answers = read_answers(given)
        rows = prepare(submission, answers, given, chosen, drop, matching=matching)
        return run(lambda: score(rows, chosen))

    return Grader(id=id, title=title, direction=direction, perfect=perfect, score=grade)


def parse_options(model: type[OptionsT], given: GradingInput) -> OptionsT:
    """The options of a task's metric.

    Raises:
        TaskBroken: They are not what the grader takes.
    """
    try:
        return model(**given.options)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise TaskBroken(
            f"Task {given.task.id} gives its metric {given.task.metric.id!r} a wrong option {where!r}: {first['msg']}.",
            hint=f"It takes: {', '.join(sorted(model.model_fields))}.",
        ) from None


def read_answers(given: GradingInput) -> Table:
    """The table of the answers.

    Raises:
        TaskBroken: There is none.
    """
    path = (given.private / given.task.answers).resolve()
    try:
        return read_table(path)
    except InvalidSubmission as error:
        raise TaskBroken(
            f"The answers of task {given.task.id} in {path} can't be used: "
            f"{error.message.replace('The submission', 'the file').replace('submission', 'answers')}",
            hint="Prepare the task again.",
        ) from None


def prepare(
    submission: Table,
    answers: Table,
    given: GradingInput,
    options: OptionsT,
    drop: Callable[[Table, OptionsT, tuple[str, ...]], Any] | None = None,
    *,
    matching: bool = True,
) -> Rows:
    """Check the columns of a submission and match its rows.

    Raises:
        InvalidSubmission: Columns or rows are not as they must be.
        TaskBroken: The answers lack a column.
    """
    ids = given.task.submission.id_columns
    targets = given.task.submission.target_columns or tuple(name for name in answers.columns if name not in ids)
    truth = options.truth or _truth(answers, ids, targets)
    matched = () if options.match.startswith("position") else ids
    needed = [*matched, *truth, *options.answer_columns()]
    if lacking := [name for name in needed if name not in answers]:
        raise TaskBroken(
            f"The answers of task {given.task.id} lack the columns {', '.join(lacking)}.",
            hint="Prepare the task again, or mend its declaration.",
        )
    for old, new in options.synonyms.items():
        if old in submission and new in submission:
            raise InvalidSubmission(f"The submission has both {old!r} and {new!r}, which mean the same; keep one.")
        submission = submission.renamed(old, new) if old in submission else submission
    targets = _check_columns(submission, ids, targets, options, exact=not given.task.submission.extra_columns)
    if not matching:
        return Rows(submission, answers, ids, targets, truth, np.arange(0), np.arange(0))
    kept = scored_rows(answers, options)
    dropped = drop(answers, options, truth) if drop else None
    if dropped is not None and options.match != "sorted-known":  # which lets submissions leave those rows out
        kept = ~dropped if kept is None else kept & ~dropped
    mine, theirs = match_rows(submission, answers, ids, options.match, dropped)
    if kept is not None:
        mine, theirs = mine[kept[theirs]], theirs[kept[theirs]]
    weight = numbers(answers[options.weight], options.weight)[theirs] if options.weight else None
    return Rows(submission, answers, ids, targets, truth, mine, theirs, weight)


def run(score: Callable[[], float | Score]) -> Score:
    """Call a metric; whatever it trips over is said in one sentence.

    Raises:
        InvalidSubmission: There is no score.
    """
    try:
        with np.errstate(all="ignore"):
            result = score()
    except (InvalidSubmission, TaskBroken):
        raise
    except Exception as error:  # libraries raise anything on odd values; the sentence names it
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise InvalidSubmission(
            f"{UNEXPECTED} ({type(error).__name__}: {reason}); write it like the sample."
        ) from error
    return result if isinstance(result, Score) else Score(value=float(result))


def _truth(answers: Table, ids: tuple[str, ...], targets: tuple[str, ...]) -> tuple[str, ...]:
    """The targets themselves; or the column of the label, where the answers hold no column per class."""
    others = tuple(name for name in answers.columns if name not in ids)
    return others if len(others) == 1 and not set(targets) & set(others) else targets


def _check_columns(
    submission: Table, ids: tuple[str, ...], targets: tuple[str, ...], options: Options, *, exact: bool
) -> tuple[str, ...]:
    submission.require([*ids, *targets])
    if exact and set(submission.columns) != {*ids, *targets}:
        extra = next(name for name in submission.columns if name not in {*ids, *targets})
        raise InvalidSubmission(f"The submission has the further column {extra!r}; write those of the sample only.")
    if options.column_order == "strict" and submission.columns != (*ids, *targets):
        raise InvalidSubmission("The columns of the submission must be in the order of the sample's.")
    if options.column_order == "id-first" and submission.columns[: len(ids)] != ids:
        raise InvalidSubmission(f"The submission must begin with the column {ids[0]!r}.")
    if options.column_order == "file":
        return tuple(name for name in submission.columns if name not in ids)
    return targets
