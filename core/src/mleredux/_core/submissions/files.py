"""Open files that an agent wrote: only regular files, and without following links."""

from __future__ import annotations

import os
from io import BufferedReader
from pathlib import Path, PurePosixPath

from mleredux._core.store.files import open_regular as open_regular
from mleredux.models import NotSubmitted, Submitted, Unusable

MAX_BYTES = 4 << 30


def open_below(root: Path, name: str) -> BufferedReader:
    """Open a file in an agent's folder by its path there (`a/b.csv`), without following links.

    Args:
        root: The agent's folder.
        name: The path relative to the folder, with `/` as separator.

    Raises:
        OSError: As for `open_regular`, or a parent folder is a link.
    """
    *folders, last = PurePosixPath(name).parts
    if name.startswith("/") or ".." in (*folders, last):
        raise OSError("lies outside the output folder")
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            try:
                below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            except FileNotFoundError:
                raise FileNotFoundError("does not exist") from None
            except OSError:
                raise OSError(f"is in {folder!r}, which is a link or a file, not a folder") from None
            os.close(here)
            here = below
        return open_regular(last, here)
    finally:
        os.close(here)


def named(message: str, usual: str, path: Path | str) -> str:
    """Return a message about a submission file with the name that the user gave instead of the usual name."""
    return f"{path}{message.removeprefix(usual)}" if message.startswith(f"{usual} ") else message


def submitted(path: Path | str) -> Submitted:
    """Return the submission at a path, which may be missing or irregular; an empty path means no submission."""
    try:
        open_regular(Path(path)).close()
    except OSError as error:
        return NotSubmitted() if isinstance(error, FileNotFoundError) or not str(path) else Unusable(problem=str(error))
    return Path(path)
