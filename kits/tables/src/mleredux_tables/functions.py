"""Create graders from plain functions, and grade two files with one. See `mleredux_tables.make_grader`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mleredux.errors import InvalidSubmission, MlereduxError
from mleredux.models import Grader, GradingInput, Metric, Submission, Task
from mleredux.models.grader import Direction, Targets

from mleredux_tables.columns import Array, number_labels, numbers, refuse, text_labels, texts, within
from mleredux_tables.definition import define
from mleredux_tables.matching import Rows
from mleredux_tables.options import Options
from mleredux_tables.table import Table, is_missing, read_table

_SUM = 1e-3
"""Tolerance for the sum of probabilities in a row."""


def define_function(
    function: Callable[..., Any], id: str, title: str, direction: Direction, targets: Targets, perfect: float | None
) -> Grader:
    """Return the grader for a function."""

    def read(rows: Rows, options: Options) -> Array:
        columns = [_parsed(rows, target, truth, targets) for target, truth in _pairs(rows)]
        if targets == "probabilities" and len(columns) > 1:
            faulty = np.abs(np.column_stack(columns).sum(axis=1) - 1) > _SUM
            refuse(faulty, "The probabilities of each row must add up to 1; those of row {row} do not.")
        return _joined(columns)

    def score(rows: Rows, y_pred: Array, options: Options) -> float:
        y_true = _joined([_true(rows, name, targets) for name in rows.truth])
        weight = {} if rows.weight is None else {"sample_weight": rows.weight}
        return float(function(y_true, y_pred, **weight))

    return define(id, title, direction, read, score, options=Options, perfect=perfect)


def _pairs(rows: Rows) -> list[tuple[str, str | None]]:
    """Pair target columns with the columns of their true values, if each has one."""
    alike = len(rows.truth) == len(rows.targets)
    return [(name, rows.truth[place] if alike else None) for place, name in enumerate(rows.targets)]


def _parsed(rows: Rows, name: str, truth: str | None, targets: Targets) -> Array:
    values = rows.predicted(name)
    if targets == "texts":
        return texts(values, name, numbers="text")
    if targets == "labels":
        text = truth is not None and rows.answers[truth].dtype.kind == "O"
        return text_labels(values, name) if text else number_labels(values, name)
    parsed = numbers(values, name)
    return within(parsed, name, (0.0, 1.0)) if targets == "probabilities" else parsed


def _true(rows: Rows, name: str, targets: Targets) -> Array:
    values = rows.true(name)
    if values.dtype.kind == "O":
        return np.where(is_missing(values), "", values)
    return numbers(values, name, finite=False) if targets in ("numbers", "probabilities") else values


def _joined(columns: list[Array]) -> Array:
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


class Graded(NamedTuple):
    """The result of grading two files.

    Attributes:
        ids: Columns by which rows were matched; empty if by position.
    """

    score: float
    """The score."""
    metric: str
    """The name of the metric."""
    ids: tuple[str, ...]
    rows: int
    """Number of scored rows."""


def grade_files(metric: Callable[..., Any] | Grader, predictions: Path, answers: Path) -> Graded:
    """Grade one CSV file against another.

    Rows are matched by the first column if both files have it and it has no repeated values in the answers, else by
    position. Targets are the other columns that both files have; if there are none, the target is the only other column
    of each file.

    Args:
        metric: A grader, or a function; for a function, predictions are numbers if the true values are, else labels.
        predictions: The file of predictions.
        answers: The file of answers.

    Raises:
        InvalidSubmission: The predictions can't be scored.
        TaskBroken: The answers are faulty.
    """
    try:
        truth = read_table(answers)
    except InvalidSubmission as error:
        raise MlereduxError(str(error).replace("The submission", str(answers)).replace("submission", "file")) from None
    submitted = read_table(predictions)
    ids = _ids(submitted, truth)
    theirs, mine = ([name for name in table.columns if name not in ids] for table in (truth, submitted))
    shared = tuple(name for name in theirs if name in mine)
    if not shared and (len(theirs) != 1 or len(mine) != 1):
        raise InvalidSubmission(
            f"{predictions.name} and {answers.name} have no target column in common; give these columns the same names."
        )
    if not isinstance(metric, Grader):
        numeric = all(truth[name].dtype.kind in "iuf" for name in shared or theirs)
        kind: Targets = "numbers" if numeric else "labels"
        metric = define_function(metric, "metric", getattr(metric, "__name__", "metric"), "maximize", kind, None)
    options = {"match": "id" if ids else "position", **({} if shared else {"truth": tuple(theirs)})}
    task = Task(
        id="metric",
        title=metric.title,
        description=answers,
        submission=Submission(id_columns=ids, target_columns=shared or tuple(mine)),
        answers=answers.name,
        metric=Metric(grader=metric, options=options),
        direction=metric.direction,
    )
    score = metric.score(GradingInput(predictions, answers.resolve().parent, task, options))
    value = score if isinstance(score, float | int) else score.value
    return Graded(float(value), metric.title, ids, len(truth))


def _ids(submission: Table, answers: Table) -> tuple[str, ...]:
    if not len(answers.columns) or len(answers.columns) < 2:
        return ()
    first = answers.columns[0]
    return (first,) if first in submission and answers.series(first).is_unique else ()
