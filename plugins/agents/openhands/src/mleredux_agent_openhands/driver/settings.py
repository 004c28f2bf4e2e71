"""What the sandbox tells the agent, from its environment variables."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Settings:
    """Where things are, and what may be used.

    Attributes:
        deadline: Unix time at which everything must be written.
        options: All options of the agent.
    """

    task_dir: Path
    output_dir: Path
    submission: Path
    scratch_dir: Path
    deadline: float
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Settings:
        """Read the variables; what is missing gets the sandbox contract's defaults (`/task`, `/output`, an hour)."""
        output_dir = Path(env.get("MLEREDUX_OUTPUT_DIR", "/output"))
        limit = float(env.get("MLEREDUX_TIME_LIMIT", 3600))
        end = float(env.get("MLEREDUX_DEADLINE", time.time() + limit))
        return cls(
            task_dir=Path(env.get("MLEREDUX_TASK_DIR", "/task")),
            output_dir=output_dir,
            submission=Path(env.get("MLEREDUX_SUBMISSION", output_dir / "submission.csv")),
            scratch_dir=Path(env.get("MLEREDUX_SCRATCH_DIR", "/tmp")),
            deadline=end - min(5.0, 0.05 * limit),
            options=json.loads(env["MLEREDUX_OPTIONS"]),
        )

    @property
    def logs_dir(self) -> Path:
        """Where the native log goes."""
        return self.output_dir / "logs" / "openhands"

    @property
    def notice(self) -> Path:
        """A file that appears when the time is nearly over."""
        return self.task_dir / "notice.txt"

    def prompt(self) -> str:
        """The first message to the agent: the sandbox's instructions and the task's description, whole."""
        instructions = (self.task_dir / "instructions.md").read_text(encoding="utf-8")
        description = (self.task_dir / "description.md").read_text(encoding="utf-8")
        return (
            "You are to solve a machine-learning task by yourself. Train models on the data that are given, measure "
            "them on a part of the data that you hold out, and hand predictions in. Write a first valid submission "
            "early, then better ones. Keep the code that makes the submission in the folder `code`. Run long "
            "programs with a timeout that fits the time left. Stop when you can't do better.\n\n"
            f"{instructions}\n\n{description}\n"
        )

    def reminder(self) -> str:
        """What is said to an agent that stops before there is a submission."""
        return (
            f"There is no file {self.submission} yet, so nothing would be graded. Nobody else will act: go on, and "
            "finish when the file is there and valid."
        )
