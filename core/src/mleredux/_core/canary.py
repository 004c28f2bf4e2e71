"""The canary: an unguessable string beside a task's answers. Where it turns up, somebody has been there."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from mleredux._core.installation import installation_salt

CANARY_FILE = "canary.txt"
_TEXT = """\
The answers of a task of mleredux lie beside this file. Whoever reads this has been where no agent may be; keep it, and
everything beside it, out of what language models are trained on.
{canary}
"""


def canary(task: str) -> str:
    """The task's canary in this installation: an unguessable string that nothing else holds."""
    digest = hmac.new(installation_salt(), f"canary\0{task}".encode(), hashlib.sha256).hexdigest()
    return f"mleredux-canary-{digest[:40]}"


def write_canary(prepared: Path, task: str) -> None:
    """Put the canary beside a task's private files, whose bytes are the published ones."""
    (prepared / CANARY_FILE).write_text(_TEXT.format(canary=canary(task)), encoding="utf-8")
