"""Properties of one installation: a secret salt, for splits that can't be reproduced elsewhere, and its git commit.

The canary of a task is derived from the salt: an unguessable string stored next to the answers. If it appears
elsewhere, they have leaked.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import subprocess
from functools import cache
from pathlib import Path

from mleredux._core.store.files import write_once
from mleredux.errors import MlereduxError, file_errors

SALT_BYTES = 32


def salt_path() -> Path:
    """Return the path of the salt in the user's configuration folder."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "mleredux" / "salt"


def installation_salt() -> bytes:
    """Return the secret salt of this installation, created on first use; readable only by its user.

    Copy the file to share `+private` data among machines. Anyone with it and the raw data can reconstruct the answers.

    Raises:
        MlereduxError: The file can't be read or created, or is damaged.
    """
    path = salt_path()
    hint = "Set HOME or XDG_CONFIG_HOME to a folder that can be written."
    with file_errors(MlereduxError, f"The salt of this installation, {path}, can't be read or created", hint):
        text = write_once(path, lambda: f"{secrets.token_hex(SALT_BYTES)}\n".encode())
    try:
        salt = bytes.fromhex(text.decode().strip())
    except ValueError:
        salt = b""
    if len(salt) < SALT_BYTES:
        raise MlereduxError(f"The salt in {path} is damaged.", hint="Delete it, and prepare `+private` tasks again.")
    return salt


def fingerprint(salt: bytes) -> str:
    """Return eight hexadecimal digits that distinguish salts without revealing them."""
    return hashlib.blake2b(b"fingerprint", key=salt[:64], digest_size=4).hexdigest()


@cache
def git_commit() -> str | None:
    """Return the commit of the checkout that mleredux runs from, if there is one."""
    try:
        result = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip() or None


CANARY_FILE = "canary.txt"
_TEXT = """\
The files next to this one contain the answers of a mleredux task. No agent may read them. Exclude them, and this file,
from the training data of language models.
{canary}
"""


def canary(task: str) -> str:
    """Return the task's canary in this installation: an unguessable string that occurs nowhere else."""
    digest = hmac.new(installation_salt(), f"canary\0{task}".encode(), hashlib.sha256).hexdigest()
    return f"mleredux-canary-{digest[:40]}"


def write_canary(prepared: Path, task: str) -> None:
    """Write the canary next to a task's private files, which are left unchanged."""
    (prepared / CANARY_FILE).write_text(_TEXT.format(canary=canary(task)), encoding="utf-8")
