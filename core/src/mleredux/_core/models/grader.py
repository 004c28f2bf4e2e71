"""Graders: submission + answers → score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from pydantic import Field

from mleredux._core.models.base import ID_PATTERN, Model

if TYPE_CHECKING:
    from mleredux._core.models.task import Task

Targets = Literal["numbers", "probabilities", "labels", "texts"]
Direction = Literal["maximize", "minimize"]
"""Whether larger or smaller scores are better."""


@dataclass(frozen=True)
class GradingInput:
    """What a grader gets.

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
    """What the check of a submission's form gets; never the answers.

    Attributes:
        submission: The submission file, hostile; one that is open already, where it lies in a folder of an agent.
        reference: What `Grader.reference` wrote when the task was prepared; the sample submission where it has none.
        task: The task's declaration.
    """

    submission: Path | BinaryIO
    reference: Path
    task: Task


class Score(Model):
    """What grading gives: one number, and details worth keeping."""

    value: float
    """In the metric's own unit, unrounded; NaN and infinities as the metric gives them."""
    details: dict[str, Any] = {}
    """Figures behind the score (per class, per group), JSON-able. Never the answers."""


class Grader(Model):
    """A metric with its checks."""

    id: str = Field(pattern=ID_PATTERN)
    """The field's standard name, in lower case with hyphens: `accuracy`, `roc-auc`, `rmse`."""
    version: str = "1"
    title: str
    direction: Direction
    perfect: float | None = None
    """The best possible value, where there is one."""
    score: Callable[[GradingInput], Score | float]
    """Raises `InvalidSubmission` with one sentence for the agent where the submission can't be scored."""
    check: Callable[[FormInput], None] | None = None
    """Raises `InvalidSubmission` where `score` would, as far as that can be told without the answers. Validation is
    this; where it is None, both validation and grading check columns, ids and types by the submission schema."""
    reference: Callable[[GradingInput, Path], None] | None = None
    """`reference(given, path)` writes what `check` has to know beside the task, from the sample submission (which is
    `given.submission`) and the answers, when the task is prepared. Nothing in it may tell of the truth."""
