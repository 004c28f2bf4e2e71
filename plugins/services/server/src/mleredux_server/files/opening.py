"""Opening files below a run's directory: no link is followed, not even on the way, and nothing but files is opened."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Opened:
    """A regular file that is open for reading.

    Attributes:
        file: To be closed by whoever got this.
        size: Bytes it had when it was opened.
        modified: When it was changed last, in nanoseconds.
    """

    file: FileIO
    size: int
    modified: int
    inode: int

    def read(self, offset: int, most: int) -> bytes:
        """Up to `most` bytes from a place on; fewer only at the end."""
        parts = []
        while most > 0 and (part := os.pread(self.file.fileno(), most, offset)):
            parts.append(part)
            offset, most = offset + len(part), most - len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close it."""
        self.file.close()

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def open_inside(root: Path, path: bytes) -> Opened:
    """Open a file below a folder.

    Args:
        root: The folder, ours.
        path: Relative to it, with `/`; of `names.path_of`.

    Raises:
        OSError: There is no regular file of that name, or a part of the way is a link.
    """
    *folders, last = path.split(b"/")
    here = os.open(root, _FOLDER)
    try:
        for folder in folders:
            below = os.open(folder, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
        descriptor = os.open(last, _FILE, dir_fd=here)
    finally:
        os.close(here)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise OSError("is not a regular file")
    return Opened(os.fdopen(descriptor, "rb", buffering=0), status.st_size, status.st_mtime_ns, status.st_ino)


def read_inside(root: Path, name: str, most: int) -> bytes | None:
    """All bytes of a file of ours in a run's directory; None where there is none.

    Raises:
        OSError: It is no regular file, or has more than `most` bytes.
    """
    try:
        with open_inside(root, name.encode()) as file:
            if file.size > most:
                raise OSError(f"{name} has more than {most:,} bytes")
            return file.read(0, file.size)
    except (FileNotFoundError, NotADirectoryError):
        return None
