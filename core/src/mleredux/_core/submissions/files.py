"""Opening files that an agent wrote: regular ones only, and through no link."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path, PurePosixPath

from mleredux.models import NotSubmitted, Submitted, Unusable

MAX_BYTES = 4 << 30


def open_regular(path: str | bytes | Path, folder: int | None = None) -> BufferedReader:
    """Open an agent's file for reading, if it is a regular file and no link.

    Args:
        path: The file.
        folder: An open folder to which the path is relative.

    Raises:
        OSError: It is not there, or is a link, a folder, a device; the message is a sentence's end.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        raise FileNotFoundError("does not exist") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError("is a link; write the file itself") from None
        raise OSError(f"can't be read ({error.strerror})") from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError("is a folder, not a file" if stat.S_ISDIR(mode) else "is not a regular file")


def open_below(root: Path, name: str) -> BufferedReader:
    """Open a file in a folder that an agent writes, by its name there (`a/b.csv`), following no link on the way.

    Raises:
        OSError: As `open_regular`; also where a folder on the way is a link.
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


def named(message: str, usual: str, given: Path | str) -> str:
    """A message on a submission file with the name that a user gave it, in place of the usual one."""
    return f"{given}{message.removeprefix(usual)}" if message.startswith(f"{usual} ") else message


def submitted(path: Path | str) -> Submitted:
    """Open a file that may be missing or something else; the empty path means no submission."""
    try:
        open_regular(Path(path)).close()
    except OSError as error:
        return NotSubmitted() if isinstance(error, FileNotFoundError) or not str(path) else Unusable(problem=str(error))
    return Path(path)
