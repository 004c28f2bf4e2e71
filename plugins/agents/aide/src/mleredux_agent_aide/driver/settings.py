"""What the sandbox tells, from its variables."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESERVE = 0.03
"""Part of the time limit that is kept for ending in good order; between 2 and 60 seconds."""


@dataclass(frozen=True)
class Settings:
    """Where things are, and what may be used.

    Attributes:
        deadline: Unix time at which the work must end.
        facts: What `task.json` says of the submission.
        options: The agent's options.
    """

    task: str
    description: str
    facts: dict[str, Any]
    data: Path
    output: Path
    submission: Path
    scratch: Path
    seed: int
    deadline: float
    options: dict[str, Any]

    @property
    def logs(self) -> Path:
        """AIDE's own logs."""
        return self.output / "logs" / "aide"

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Settings:
        """Read the variables of the sandbox contract."""
        limit = float(env.get("MLEREDUX_TIME_LIMIT", 3600))
        deadline = float(env.get("MLEREDUX_DEADLINE", time.time() + limit))
        task_dir = Path(env.get("MLEREDUX_TASK_DIR", "/task"))
        output = Path(env.get("MLEREDUX_OUTPUT_DIR", "/output"))
        return cls(
            task=env.get("MLEREDUX_TASK", "task"),
            description=(task_dir / "description.md").read_text(encoding="utf-8", errors="replace"),
            facts=json.loads((task_dir / "task.json").read_text(encoding="utf-8")),
            data=Path(env.get("MLEREDUX_DATA_DIR", task_dir / "data")),
            output=output,
            submission=Path(env.get("MLEREDUX_SUBMISSION", output / "submission.csv")),
            scratch=Path(env.get("MLEREDUX_SCRATCH_DIR", "/tmp")),
            seed=int(env.get("MLEREDUX_SEED", 0)),
            deadline=deadline - min(max(RESERVE * limit, 2), 60),
            options=json.loads(env.get("MLEREDUX_OPTIONS") or "{}"),
        )
