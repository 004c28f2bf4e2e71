"""What the sandbox tells the agent, from its environment variables."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
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
    data_dir: Path
    output_dir: Path
    submission: Path
    deadline: float
    options: dict[str, Any]

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Settings:
        """Read the variables; what is missing gets the sandbox contract's defaults (`/task`, `/output`, an hour)."""
        task_dir = Path(env.get("MLEREDUX_TASK_DIR", "/task"))
        output_dir = Path(env.get("MLEREDUX_OUTPUT_DIR", "/output"))
        limit = float(env.get("MLEREDUX_TIME_LIMIT", 3600))
        end = float(env.get("MLEREDUX_DEADLINE", time.time() + limit))
        return cls(
            task_dir=task_dir,
            data_dir=Path(env.get("MLEREDUX_DATA_DIR", task_dir / "data")),
            output_dir=output_dir,
            submission=Path(env.get("MLEREDUX_SUBMISSION", output_dir / "submission.csv")),
            deadline=end - min(5.0, 0.05 * limit),
            options=json.loads(env["MLEREDUX_OPTIONS"]),
        )

    @property
    def logs_dir(self) -> Path:
        """Where the native logs go."""
        return self.output_dir / "logs" / "mlagentbench"

    @property
    def work_dir(self) -> Path:
        """The agent's workspace; its tools see nothing else."""
        return self.output_dir / "code"

    def problem(self) -> str:
        """The research problem: the sandbox's instructions and the task's description, whole."""
        instructions = (self.task_dir / "instructions.md").read_text(encoding="utf-8")
        description = (self.task_dir / "description.md").read_text(encoding="utf-8")
        return (
            f"Solve the machine-learning task below. Your workspace is {self.work_dir}; its folder `data` holds the "
            f"data. Scripts that you execute must write the predictions to {self.submission}. Write a first valid "
            f"submission early, then better ones.\n\n{instructions}\n\n{description}\n"
        )
