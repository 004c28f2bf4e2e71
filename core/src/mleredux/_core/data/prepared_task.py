"""A task with what its prepared files add: a downloaded leaderboard, and whether they are the published ones."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from mleredux._core.data.datastore import LEADERBOARD_FILE, OTHER_DATA_NOTE
from mleredux.models import Task


def as_prepared(task: Task, prepared: Path) -> Task:
    """Return the task with information about its prepared files.

    That is the downloaded leaderboard, if there is one, else the one that its preparation wrote next to the answers,
    and a note if the files differ from the published ones.
    """
    boards = [prepared.parent / LEADERBOARD_FILE, prepared / "private" / LEADERBOARD_FILE]
    leaderboard = next((path for path in (boards if task.leaderboard is None else boards[:1]) if path.is_file()), None)
    changes: dict[str, Any] = {"leaderboard": leaderboard} if leaderboard else {}
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, ValueError):
        if json.loads((prepared / "prepared.json").read_bytes()).get("differences"):
            changes["note"] = " ".join(filter(None, (task.note, OTHER_DATA_NOTE)))
    return task.model_copy(update=changes) if changes else task
