"""Submissions that are programs: how they are executed while they are graded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from pydantic import Field

from mleredux.models.base import Model

if TYPE_CHECKING:
    from mleredux.models.grader import Grader, Score
    from mleredux.models.task import Task


class Execution(Model):
    """How a submission that is a program is executed while it is graded; `mleredux_programs.Execution` does it."""

    seconds: float = Field(default=60.0, gt=0)
    """Of wall time, for all inputs."""

    def instructions(self, task: Task) -> str:
        """Return the part of an agent's instructions on the program to submit."""
        raise NotImplementedError

    def check(self, task: Task, program: BinaryIO, public: Path, seconds: float) -> None:
        """Check a program by its predictions for the sample inputs, within so many seconds.

        Raises:
            InvalidSubmission: It is too large, fails, or its predictions are not well-formed.
            TaskBroken: The task has no sample inputs.
        """
        raise NotImplementedError

    def score(self, task: Task, grader: Grader, program: Path, private: Path) -> Score:
        """Execute a program on the private inputs, and score its predictions by the task's grader.

        Raises:
            InvalidSubmission: It can't be scored.
            TaskBroken: The task is at fault.
        """
        raise NotImplementedError
