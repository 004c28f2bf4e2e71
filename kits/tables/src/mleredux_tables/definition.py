"""Define a grader from a metric: options, files, columns and rows are handled here, once for all graders."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from mleredux.errors import InvalidSubmission, TaskBroken
from mleredux.models import FormInput, Grader, GradingInput, Score, Task, first_problem
from mleredux.models.grader import Direction
from pydantic import ValidationError

from mleredux_tables.columns import numbers
from mleredux_tables.ids import compare_ids
from mleredux_tables.matching import Rows, match_rows, scored_rows
from mleredux_tables.options import Options
from mleredux_tables.table import Table, read_header, read_table

OptionsT = TypeVar("OptionsT", bound=Options)
PredictionsT = TypeVar("PredictionsT")
Drop = Callable[[Table, OptionsT, tuple[str, ...]], Any]

UNEXPECTED = "The submission contains values that the metric can't handle"
"""The start of the message for a problem that no check covers; a grader that shows it lacks a check."""

_SCORED = "mleredux:scored"
"""Column of a reference that states whether a row counts."""


def define(
    id: str,
    title: str,
    direction: Direction,
    read: Callable[[Rows, OptionsT], PredictionsT],
    score: Callable[[Rows, PredictionsT, OptionsT], float | Score],
    *,
    options: type[OptionsT],
    perfect: float | None,
    matching: bool = True,
    drop: Drop[OptionsT] | None = None,
) -> Grader:
    """Create a grader of tables from two functions; files, columns and rows are handled here.

    Args:
        id: The id of the grader.
        title: A short description for lists.
        direction: `maximize` or `minimize`.
        read: Checks and parses the predictions of matched rows; raises `InvalidSubmission`. Validation also calls it,
            with the sample submission instead of the answers, so it may use only the ids of the answers, whether labels
            are text, and the columns that the options list in `form_columns`.
        score: Computes the score from the matched rows, the result of `read`, and the options.
        options: The model of the options.
        perfect: The best possible score.
        matching: Whether rows are matched; otherwise both functions get the two tables, and no rows.
        drop: Returns the rows of the answers that are not scored, in addition to those that `where` excludes.
    """

    def grade(inputs: GradingInput) -> Score:
        chosen = parse_options(options, inputs.task, inputs.options)
        submission, answers = read_table(inputs.submission), read_answers(inputs)
        return graded(submission, answers, inputs.task, lambda: _targets(inputs, answers), chosen)

    def grade_tables(submission: Table, answers: Table, task: Task, values: dict[str, Any]) -> Score:
        chosen = parse_options(options, task, values)
        return graded(submission, answers, task, lambda: task.submission.target_columns, chosen)

    def graded(
        submission: Table, answers: Table, task: Task, targets: Callable[[], tuple[str, ...]], chosen: OptionsT
    ) -> Score:
        def scored() -> float | Score:
            rows = prepare(submission, answers, task, targets(), chosen, drop, matching=matching)
            return score(rows, read(rows, chosen), chosen)

        return run(scored)

    def check(inputs: FormInput) -> None:
        chosen = parse_options(options, inputs.task)
        submission, reference = read_table(inputs.submission), _as_declared(read_table(inputs.reference), inputs.task)
        targets = inputs.task.submission.target_columns or tuple(
            name
            for name in reference.columns
            if name not in (*inputs.task.submission.id_columns, *chosen.form_columns(), _SCORED)
        )

        def checked() -> float:
            rows = prepare(
                submission, reference, inputs.task, targets, chosen, _not_scored, matching=matching, form=True
            )
            read(rows, chosen)
            return 0.0

        run(checked)

    def reference(inputs: GradingInput, path: Path) -> None:
        chosen = parse_options(options, inputs.task, inputs.options)
        if chosen.form_columns() or chosen.match == "sorted-covering" or drop is not None:
            _write_reference(inputs, path, chosen, drop)
        else:
            shutil.copyfile(inputs.submission, path)

    return Grader(
        id=id,
        title=title,
        direction=direction,
        perfect=perfect,
        score=grade,
        score_tables=grade_tables,
        check=check,
        reference=reference,
    )


def _targets(grading: GradingInput, answers: Table) -> tuple[str, ...]:
    """Return the target columns: the declared ones, else all columns of the sample except its ids."""
    task, ids = grading.task, grading.task.submission.id_columns
    sample = grading.private.parent / "public" / (task.submission.sample or "")
    if task.submission.target_columns or not sample.is_file():
        return task.submission.target_columns or tuple(name for name in answers.columns if name not in ids)
    return tuple(name for name in read_header(sample) if name not in ids)


def _as_declared(reference: Table, task: Task) -> Table:
    """Return a reference in which columns declared as text are text, whatever values the sample has in them."""
    for name, kind in task.submission.types.items():
        if kind == "string" and name in reference:
            reference = reference.as_text(name)
    return reference


def _not_scored(reference: Table, options: Options, truth: tuple[str, ...]) -> Any:
    return ~reference[_SCORED].astype(bool) if _SCORED in reference else None


def _write_reference(grading: GradingInput, path: Path, options: OptionsT, drop: Drop[OptionsT] | None) -> None:
    """Write the sample with everything else that determines the form of a submission: shapes, and which rows are
    scored.
    """
    sample, answers = read_table(grading.submission), read_answers(grading)
    ids = grading.task.submission.id_columns
    truth = options.truth or _truth(answers, ids, _targets(grading, answers))
    mine = compare_ids(sample, answers, ids) if ids else None
    places = np.arange(len(sample)) if mine is None else np.where(mine.mine >= 0, mine.firsts()[mine.mine], -1)
    added: dict[str, Any] = {name: answers[name][places] for name in options.form_columns() if name not in sample}
    dropped = drop(answers, options, truth) if drop else None
    if dropped is not None:
        added[_SCORED] = ~dropped[places]
    sample.write(path, added, np.flatnonzero(places >= 0))


def parse_options(model: type[OptionsT], task: Task, values: dict[str, Any] | None = None) -> OptionsT:
    """Return the options of a task's metric.

    Args:
        model: The model of the options.
        task: The task.
        values: Options to use instead of those that the task declares.

    Raises:
        TaskBroken: The options are not valid for the grader.
    """
    try:
        return model(**(task.metric.options if values is None else values))
    except ValidationError as error:
        name, message, _ = first_problem(error)
        raise TaskBroken(
            f"Task {task.id}: option {name!r} of metric {task.metric.id!r} is invalid: {message}.",
            hint=f"Its options: {', '.join(sorted(model.model_fields))}.",
        ) from None


def read_answers(inputs: GradingInput) -> Table:
    """Return the table of the answers.

    Raises:
        TaskBroken: There are no answers.
    """
    path = (inputs.private / inputs.task.answers).resolve()
    try:
        return read_table(path)
    except InvalidSubmission as error:
        raise TaskBroken(
            f"The answers of task {inputs.task.id} in {path} can't be used: "
            f"{error.message.replace('The submission', 'the file').replace('submission', 'answers')}",
            hint="Prepare the task again.",
        ) from None


def prepare(
    submission: Table,
    answers: Table,
    task: Task,
    targets: tuple[str, ...],
    options: OptionsT,
    drop: Callable[[Table, OptionsT, tuple[str, ...]], Any] | None = None,
    *,
    matching: bool = True,
    form: bool = False,
) -> Rows:
    """Check the columns of a submission and match its rows.

    Args:
        targets: The columns that the submission must have in addition to its ids.
        form: Whether `answers` is not the answers but the reference known to validation.

    Raises:
        InvalidSubmission: Columns or rows are not as required.
        TaskBroken: The answers lack a column.
    """
    ids = task.submission.id_columns
    truth = (
        tuple(name for name in targets if name in answers) if form else options.truth or _truth(answers, ids, targets)
    )
    matched = () if options.match.startswith("position") else ids
    needed = [*matched, *truth, *(options.form_columns() if form else options.answer_columns())]
    if lacking := [name for name in needed if name not in answers]:
        raise TaskBroken(
            f"The answers of task {task.id} lack the columns {', '.join(lacking)}.",
            hint="Prepare the task again, or fix its declaration.",
        )
    for old, new in options.synonyms.items():
        if old in submission and new in submission:
            raise InvalidSubmission(f"The submission has both {old!r} and {new!r}, which mean the same; keep one.")
        submission = submission.renamed(old, new) if old in submission else submission
    targets = _check_columns(submission, ids, targets, options, exact=not task.submission.extra_columns)
    dropped = drop(answers, options, truth) if drop else None
    if not matching:
        return Rows(submission, answers, ids, targets, truth, np.arange(0), np.arange(0), form=form, dropped=dropped)
    kept = scored_rows(answers, options)
    if dropped is not None and options.match != "sorted-known":  # so that submissions may omit these rows
        kept = ~dropped if kept is None else kept & ~dropped
    mine, theirs = match_rows(submission, answers, ids, options.match, dropped)
    if kept is not None:
        mine, theirs = mine[kept[theirs]], theirs[kept[theirs]]
    weight = numbers(answers[options.weight], options.weight)[theirs] if options.weight and not form else None
    return Rows(submission, answers, ids, targets, truth, mine, theirs, weight, form=form)


def run(score: Callable[[], float | Score]) -> Score:
    """Call a metric; any exception is reported in one sentence.

    Raises:
        InvalidSubmission: There is no score.
    """
    try:
        with np.errstate(all="ignore"):
            result = score()
    except (InvalidSubmission, TaskBroken):
        raise
    except Exception as error:  # libraries may raise anything on odd values; the sentence contains the exception
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise InvalidSubmission(
            f"{UNEXPECTED} ({type(error).__name__}: {reason}); write it like the sample."
        ) from error
    return result if isinstance(result, Score) else Score(value=float(result))


def _truth(answers: Table, ids: tuple[str, ...], targets: tuple[str, ...]) -> tuple[str, ...]:
    """Return the targets, or the label column if the answers do not have one column per class."""
    others = tuple(name for name in answers.columns if name not in ids)
    return others if len(others) == 1 and not set(targets) & set(others) else targets


def _check_columns(
    submission: Table, ids: tuple[str, ...], targets: tuple[str, ...], options: Options, *, exact: bool
) -> tuple[str, ...]:
    submission.require([*ids, *targets])
    if exact and set(submission.columns) != {*ids, *targets}:
        extra = next(name for name in submission.columns if name not in {*ids, *targets})
        raise InvalidSubmission(f"The submission has the extra column {extra!r}; write only those of the sample.")
    if options.column_order == "strict" and submission.columns != (*ids, *targets):
        raise InvalidSubmission("The columns of the submission must be in the same order as in the sample.")
    if options.column_order == "id-first" and submission.columns[: len(ids)] != ids:
        raise InvalidSubmission(f"The submission must begin with the column {ids[0]!r}.")
    if options.column_order == "file":
        return tuple(name for name in submission.columns if name not in ids)
    return targets
