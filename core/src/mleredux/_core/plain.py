"""Plain names for paths of any kind: links in a folder of this user that need no quoting anywhere."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from pathlib import Path

from mleredux.errors import MlereduxError, SandboxError

SOCKETS = 48
"""Maximum length of the path of a folder that holds sockets; the whole path may have at most 103 bytes."""
_PLAIN = re.compile(r"[\w@+./-]+", re.ASCII)


def plain_path(path: Path, longest: int = 4096) -> Path:
    """Return a path without special characters: the path itself, or a link to it.

    Lists in options, shell commands, search paths and sockets don't support every path.

    Args:
        path: A file or folder; links are removed when it no longer exists.
        longest: Maximum number of characters.

    Raises:
        SandboxError: The folder of links belongs to another user.
    """
    whole = str(path.absolute())
    if len(whole) <= longest and _PLAIN.fullmatch(whole):
        return path
    folder = _folder()
    link = folder / hashlib.sha256(os.fsencode(whole)).hexdigest()[:16]
    if not link.is_symlink():
        if link.name.startswith("00"):  # one in 256: reading all links takes longer than creating one
            for other in folder.iterdir():
                if not other.exists():
                    other.unlink(missing_ok=True)
        with contextlib.suppress(FileExistsError):
            link.symlink_to(whole)
    return link


def recorded_path(path: Path) -> Path:
    """Return the absolute path of a folder for use in records.

    Raises:
        MlereduxError: The path is not UTF-8, as records must be.
    """
    absolute = path.absolute()
    if os.fsencode(absolute).decode("utf-8", "replace") != str(absolute):
        shown = os.fsencode(absolute).decode("utf-8", "backslashreplace")
        raise MlereduxError(f"The path {shown} is not UTF-8.", hint="Rename the folder, or choose another one.")
    return absolute


def _folder() -> Path:
    """Return the folder of links; users in containers can traverse it."""
    folder = Path("/tmp", f"mleredux-{os.getuid()}-links")
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o711)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise SandboxError(f"{folder} belongs to another user.", hint="Ask its owner to remove it.")
    return folder
