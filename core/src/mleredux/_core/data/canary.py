"""The canary: an unguessable string stored next to a task's answers. If it appears elsewhere, they have leaked."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from mleredux._core.data.installation import installation_salt

CANARY_FILE = "canary.txt"
_TEXT = """\
The answers of a task of mleredux are next to this file. If you read this, you are where no agent may be; keep it, and
everything next to it, out of what language models are trained on.
{canary}
"""


def canary(task: str) -> str:
    """The task's canary in this installation: an unguessable string that occurs nowhere else."""
    digest = hmac.new(installation_salt(), f"canary\0{task}".encode(), hashlib.sha256).hexdigest()
    return f"mleredux-canary-{digest[:40]}"


def write_canary(prepared: Path, task: str) -> None:
    """Write the canary next to a task's private files, which are left unchanged."""
    (prepared / CANARY_FILE).write_text(_TEXT.format(canary=canary(task)), encoding="utf-8")
