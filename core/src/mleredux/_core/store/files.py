"""Write files atomically, so that neither a reader nor a crash ever sees an incomplete file."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replace a file's content atomically; it is on disk when this returns."""
    data = content.encode() if isinstance(content, str) else content
    # Not derived from the file's own name, which may have the maximum length.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_once(path: Path, content: Callable[[], bytes]) -> bytes:
    """Return the content of a secret file, readable only by its user; the first process that needs it creates it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")  # created with mode 0600
        with os.fdopen(descriptor, "wb") as file:
            file.write(content())
        with suppress(FileExistsError):  # another process was first
            path.hardlink_to(temporary)
        Path(temporary).unlink()
    return path.read_bytes()


def read_record(path: Path, missing: tuple[type[OSError], ...] = (OSError,)) -> dict[str, Any]:
    """Return the object in a JSON file; empty if the file is missing or damaged.

    Args:
        path: The file.
        missing: The errors of reading that mean that there is no file; others are raised.
    """
    record = None
    with suppress(*missing, ValueError):
        record = json.loads(path.read_bytes())
    return record if isinstance(record, dict) else {}


class FileLock:
    """A lock on a file that the kernel releases when the process dies, however it dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def acquire(self, *, blocking: bool = False) -> bool:
        """Take the lock; return False if another holder has it and `blocking` is False."""
        return self._acquire(self.path.open("ab"), blocking=blocking)

    def _acquire(self, file: IO[bytes], *, blocking: bool = False) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if blocking else fcntl.LOCK_NB))
        except BlockingIOError:
            file.close()
            return False
        except BaseException:
            file.close()
            raise
        self._file = file
        return True

    def release(self) -> None:
        """Release the lock."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @contextmanager
    def attempt(self) -> Iterator[bool]:
        """Take the lock for a block if no other holder has it; yield whether it was taken."""
        acquired = self.acquire()
        try:
            yield acquired
        finally:
            if acquired:
                self.release()

    def held_elsewhere(self) -> bool:
        """Return whether another process or another lock object holds it."""
        try:
            file = self.path.open("rb")  # reading suffices for this, even if nothing may be written
        except FileNotFoundError:
            return False
        probe = FileLock(self.path)
        if probe._acquire(file):
            probe.release()
            return False
        return True

    def __enter__(self) -> FileLock:
        self.acquire(blocking=True)
        return self

    def __exit__(self, *_exception: object) -> None:
        self.release()
