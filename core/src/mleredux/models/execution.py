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
