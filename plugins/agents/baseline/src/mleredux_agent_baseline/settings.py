"""Options of the agent, and how it divides its time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mleredux_agentkit import Task

OPTIONS = {"search_seconds": 600, "max_rows": 200_000, "folds": 5, "candidates": 100}
TIME_SHARE = 0.8
"""Share of the time limit for trying candidates; the rest is for the final fit."""
CELLS_PER_SECOND = 5_000
"""Number of cells of the training table per additional second of search."""


def search_end(task: Task, cells: int, targets: int, *, heavy: bool) -> float:
    """Return the Unix time at which the search must end: small tables do not deserve many minutes.

    Args:
        cells: Rows times columns of the training table.
        targets: Number of targets, each with a separate model.
        heavy: Whether there are texts or images.
    """
    worth = (120 if heavy else 30) + 4 * (targets - 1) + cells / CELLS_PER_SECOND
    seconds = min(worth, float(task.options["search_seconds"]))
    return min(task.started + TIME_SHARE * (task.deadline - task.started), time.time() + seconds)
