"""Graders: submission + answers → score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from pydantic import Field

from mleredux.models.base import ID_PATTERN, Model

if TYPE_CHECKING:
    from mleredux.models.task import Task

Targets = Literal["numbers", "probabilities", "labels", "texts"]
Direction = Literal["maximize", "minimize"]
"""Whether larger or smaller scores are better."""


@dataclass(frozen=True)
class GradingInput:
    """The input of a grader.

    Attributes:
        submission: The submission file; a regular file, otherwise hostile.
        private: The folder of the answers.
        task: The task's declaration (its `submission` names id and target columns, its `answers` the answers' file).
        options: The options of the task's metric.
    """

    submission: Path
    private: Path
    task: Task
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FormInput:
    """The input of the check of a submission's form; never the answers.

    Attributes:
        submission: The submission file, hostile; an open file if it is in a folder of an agent.
        reference: The file that `Grader.reference` wrote when preparing the task; without one, the sample submission.
        task: The task's declaration.
    """

    submission: Path | BinaryIO
    reference: Path
    task: Task


class Score(Model):
    """The result of grading: one number, and details."""

    value: float
    """In the metric's own unit, unrounded; NaN and infinities as computed by the metric."""
    details: dict[str, Any] = {}
    """Figures behind the score (per class, per group), JSON-serializable. Never the answers."""


class Grader(Model):
    """A metric with its checks."""

    id: str = Field(pattern=ID_PATTERN)
    """The standard name of the metric, in lower case with hyphens: `accuracy`, `roc-auc`, `rmse`."""
    version: str = "1"
    """The version of the metric; grades of different versions are not compared."""
    title: str
    """A short description for lists."""
    direction: Direction
    """Whether a larger or a smaller score is better."""
    requires: dict[str, str] = {}
    """Optional libraries that `score` or `check` imports: the module → what pip installs for it. They are looked for
    before an agent starts."""
    perfect: float | None = None
    """The best possible value, if there is one."""
    score: Callable[[GradingInput], Score | float]
    """Computes the score; raises `InvalidSubmission`, with one sentence for the agent, if that is impossible."""
    score_tables: Callable[[Any, Any, Any, dict[str, Any]], Score | float] | None = None
    """`score_tables(submission, answers, task, options)`: the same from two tables in memory, as
    `mleredux_tables.read_table` would read them; None if only files can be graded."""
    check: Callable[[FormInput], None] | None = None
    """Raises `InvalidSubmission` if `score` would, as far as that can be determined without the answers. Validation
    calls this; if it is None, both validation and grading check columns, ids and types by the submission schema."""
    reference: Callable[[GradingInput, Path], None] | None = None
    """`reference(given, path)` writes the data that `check` needs in addition to the task, from the sample submission
    (`given.submission`) and the answers, when the task is prepared. It must not reveal anything about the answers."""
