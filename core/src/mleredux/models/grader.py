"""Graders: submission + answers → score; and how submissions that are programs are executed while they are graded."""

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
        submission: The submission file: a regular file with untrusted content.
        private: The folder of the answers.
        task: The task's declaration; its `submission` names the id and target columns, and its `answers` the answers
        file.
        options: The options of the task's metric.
    """

    submission: Path
    private: Path
    task: Task
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FormInput:
    """The input for checking whether a submission is well-formed; never contains the answers.

    Attributes:
        submission: The submission file, with untrusted content; an open file if it is in an agent's folder.
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
    """Optional libraries that `score` or `check` imports: module name → the requirement that pip installs for it. Their
    presence is checked before an agent starts."""
    perfect: float | None = None
    """The best possible score, if there is one."""
    score: Callable[[GradingInput], Score | float]
    """Computes the score, or raises `InvalidSubmission` with one sentence for the agent if that is impossible."""
    score_tables: Callable[[Any, Any, Any, dict[str, Any]], Score | float] | None = None
    """`score_tables(submission, answers, task, options)` computes the same score from two tables in memory, as returned
    by `mleredux_tables.read_table`; None if only files can be graded."""
    check: Callable[[FormInput], None] | None = None
    """Raises `InvalidSubmission` if `score` would, if that can be determined without the answers. Validation
    calls this. If None, both validation and grading check columns, ids and types against the submission schema."""
    reference: Callable[[GradingInput, Path], None] | None = None
    """`reference(given, path)` is called when the task is prepared. It writes the data that `check` needs in addition
    to the task, from the sample submission (`given.submission`) and the answers. It must not reveal anything about the
    answers."""


class Execution(Model):
    """How a submitted program is executed during grading; `mleredux_programs.Execution` implements it."""

    seconds: float = Field(default=60.0, gt=0)
    """Wall time for all inputs, in seconds."""

    def instructions(self, task: Task) -> str:
        """Return the part of an agent's instructions that describes the program to submit."""
        raise NotImplementedError

    def check(self, task: Task, program: BinaryIO, public: Path, seconds: float) -> None:
        """Check a program by its predictions for the sample inputs.

        Args:
            task: The task, whose schema the predictions must match.
            program: The submitted program.
            public: The folder of public files, which contains the sample inputs.
            seconds: The time limit, in seconds of wall time.

        Raises:
            InvalidSubmission: The program is too large or fails, or its predictions are not well-formed.
            TaskBroken: The task has no sample inputs.
        """
        raise NotImplementedError

    def score(self, task: Task, grader: Grader, program: Path, private: Path) -> Score:
        """Execute a program on the private inputs and score its predictions with the task's grader.

        Raises:
            InvalidSubmission: The program can't be scored.
            TaskBroken: The task itself is faulty.
        """
        raise NotImplementedError
