"""Graders: submission + answers → score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from mleredux._core.models.base import ID_PATTERN, Model

if TYPE_CHECKING:
    from mleredux._core.models.task import Task

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
