"""The time when the file of a plan was written, according to the history of a repository."""

from __future__ import annotations

import subprocess
from datetime import datetime
from pathlib import Path


def registration(plan: Path, began: datetime) -> str:
    """Return a sentence about whether a plan was committed, as it is now, before the first run began.

    Args:
        plan: The file.
        began: When the first run began, with its time zone.
    """
    changed = _git(plan, "status", "--porcelain", "--ignored", "--", plan.name)
    if changed is None:
        return f"{plan.name} is not in a git repository, so nothing shows when it was written."
    last = _git(plan, "log", "-1", "--format=%aI", "--", plan.name)
    blob = _git(plan, "rev-parse", "--short", f"HEAD:./{plan.name}")
    if changed or not last or not blob:
        return f"{plan.name} has uncommitted changes, so nothing shows when it was written."
    order = "before" if datetime.fromisoformat(last) <= began else "after"
    return f"{plan.name} (blob {blob}) was committed on {last}, {order} the first run on {began.isoformat()}."


def _git(plan: Path, *arguments: str) -> str | None:
    """Return the output of a git command in the folder of the plan, or None if it fails."""
    try:
        command = ["git", "-C", str(plan.resolve().parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
