"""Open files under a run's directory: no links are followed anywhere in the path, and only regular files are opened."""

from __future__ import annotations

import os
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path

from mleredux.plugin.files import Mask, open_below
from mleredux_executor_nodes.shared import StoredFile


@dataclass(frozen=True)
class Cover:
    """How to read files whose secrets may not be masked yet. Data already sent is never changed by later masking.

    Attributes:
        mask: Hides the secrets.
        growing: Whether more may be appended, so that a possible beginning of a secret at the end of the file is held
            back.
        settled: Files not modified after this time, in nanoseconds, are already masked; None: no file is.
    """

    mask: Mask
    growing: bool
    settled: int | None = None


@dataclass(frozen=True)
class Opened:
    """A regular file, open for reading.

    Attributes:
        file: Must be closed by the receiver.
        size: Its size when it was opened, without any part that may not be shown.
        modified: Time of the last modification, in nanoseconds.
        mask: Masks its secrets, if it may hold any.
    """

    file: RawIOBase | StoredFile
    size: int
    modified: int
    inode: int
    mask: Mask | None = None

    def check(self, offset: int, most: int) -> None:
        """Verify the content of a file in an object store before it is read: as much of it as fits in memory.

        Raises:
            StoreError: It is damaged or missing, or the object store does not respond.
        """
        if isinstance(self.file, StoredFile):
            self.file.check(offset, most)

    def read(self, offset: int, most: int) -> bytes:
        """Read up to `most` bytes from an offset; fewer only at the end."""
        if self.mask is None:
            return self._read(offset, most)
        most = min(most, self.size - offset)
        return self.mask.read(self._read, offset, most) if most > 0 else b""

    def _read(self, offset: int, most: int) -> bytes:
        if isinstance(self.file, StoredFile):
            return self.file.read(offset, most)
        parts = []
        while most > 0 and (part := os.pread(self.file.fileno(), most, offset)):
            parts.append(part)
            offset, most = offset + len(part), most - len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close the file."""
        if isinstance(self.file, RawIOBase):
            self.file.close()

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def open_inside(root: Path, path: bytes, cover: Cover | None = None) -> Opened:
    """Open a file under a folder.

    Args:
        root: The folder; trusted.
        path: Relative to it, with `/`; from `names.path_of`.
        cover: How to read it, if it may hold secrets.

    Raises:
        OSError: There is no regular file with that name, or a part of the path is a link.
    """
    file = open_below(root.parent, f"{root.name}/{os.fsdecode(path)}").detach()
    status = os.fstat(file.fileno())
    size, modified, mask = status.st_size, status.st_mtime_ns, None
    if cover is not None and (cover.settled is None or modified > cover.settled):
        mask = cover.mask
        if cover.growing:
            reach = min(size, mask.reach)
            size -= mask.begun(os.pread(file.fileno(), reach, size - reach))
    return Opened(file, size, modified, status.st_ino, mask)


def opened(file: StoredFile, cover: Cover | None = None) -> Opened:
    """Open a file of an ended run in an object store, read as `cover` requires."""
    masked = cover is not None and (cover.settled is None or file.modified > cover.settled)
    return Opened(file, file.size, file.modified, 0, cover.mask if cover is not None and masked else None)
