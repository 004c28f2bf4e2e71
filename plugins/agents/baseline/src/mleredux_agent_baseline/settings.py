"""What the sandbox tells the agent, from its environment variables."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GRACE = 0.05
"""Part of the time limit that is kept free for writing what is there."""
TIME_SHARE = 0.8
"""Part of the time limit for trying candidates; the rest is for the final fit."""
CELLS_PER_SECOND = 5_000
"""For so many cells of the training table, another second is spent."""


@dataclass(frozen=True)
class Settings:
    """Where things are, and what may be used.

    Attributes:
        deadline: Unix time at which everything must be written.
        options: The agent's options over their defaults.
    """

    task: str
    task_dir: Path
    data_dir: Path
    output_dir: Path
    submission: Path
    scratch_dir: Path
    seed: int
    started: float
    deadline: float
    cpus: int
    memory_mb: int
    validate_url: str | None
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Settings:
        """Read the variables; what is missing gets the sandbox contract's defaults (`/task`, `/output`, an hour)."""
        started = time.time()
        task_dir = Path(env.get("MLEREDUX_TASK_DIR", "/task"))
        output_dir = Path(env.get("MLEREDUX_OUTPUT_DIR", "/output"))
        limit = float(env.get("MLEREDUX_TIME_LIMIT", 3600))
        deadline = float(env.get("MLEREDUX_DEADLINE", started + limit))
        options = {"search_seconds": 600, "max_rows": 200_000, "folds": 5, "candidates": 100}
        options.update(json.loads(env.get("MLEREDUX_OPTIONS") or "{}"))
        return cls(
            task=env.get("MLEREDUX_TASK", "task"),
            task_dir=task_dir,
            data_dir=Path(env.get("MLEREDUX_DATA_DIR", task_dir / "data")),
            output_dir=output_dir,
            submission=Path(env.get("MLEREDUX_SUBMISSION", output_dir / "submission.csv")),
            scratch_dir=Path(env.get("MLEREDUX_SCRATCH_DIR", "/tmp")),
            seed=int(env.get("MLEREDUX_SEED", 0)),
            started=started,
            deadline=deadline - min(max(GRACE * (deadline - started), 0.5), 20),
            cpus=max(1, int(float(env.get("MLEREDUX_CPUS", os.cpu_count() or 1)))),
            memory_mb=int(float(env.get("MLEREDUX_MEMORY_MB", 4096))),
            validate_url=env.get("MLEREDUX_VALIDATE_URL") or None,
            options=options,
        )

    def search_end(self, cells: int, targets: int, *, heavy: bool) -> float:
        """Unix time at which the last candidate must be tried: small tables are not worth many minutes.

        Args:
            cells: Rows times columns of the training table.
            targets: Things to predict, each by a model of its own.
            heavy: Whether there are texts or images.
        """
        worth = (120 if heavy else 30) + 4 * (targets - 1) + cells / CELLS_PER_SECOND
        seconds = min(worth, float(self.options["search_seconds"]))
        return min(self.started + TIME_SHARE * (self.deadline - self.started), time.time() + seconds)
