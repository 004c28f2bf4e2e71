"""Write files atomically, so that no reader or crash ever sees an incomplete file; open only regular files."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from mleredux.errors import MlereduxError

MAX_DOCUMENT = 64 << 20
"""The maximum size of a document of a run, which may come from another user, in bytes."""


def write_atomically(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Replace a file's content atomically; it is on disk when this returns, and never has more permissions."""
    data = content.encode() if isinstance(content, str) else content
    # Not derived from the file's own name, which may have the maximum length.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
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


def open_regular(path: str | bytes | Path, folder: int | None = None) -> BufferedReader:
    """Open an agent's file for reading, if it is a regular file and not a link.

    Args:
        path: The file.
        folder: An open folder to which the path is relative.

    Raises:
        OSError: The file does not exist, or is a link, a folder or a device; the message is the end of a sentence.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last for NUL and surrogates in the path
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


def read_bounded(path: Path, begin: int = 0) -> bytes:
    """Return the content of a file of a run, without following a link, waiting for a pipe or filling the memory.

    Args:
        path: The file.
        begin: The number of bytes to skip.

    Raises:
        OSError: The file can't be read, is not a regular file, or is too large; the message is the end of a sentence.
    """
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > MAX_DOCUMENT:
            raise OSError(f"is larger than {MAX_DOCUMENT >> 20} MiB")
        file.seek(begin)
        return file.read(MAX_DOCUMENT)


def damaged(path: Path, error: Exception, where: str = "") -> MlereduxError:
    """Return the error for a file of a run that can't be read or parsed."""
    reason = error if type(error) is ValueError else type(error).__name__
    problem = error if isinstance(error, OSError) else f"is damaged{where} ({reason})"
    return MlereduxError(f"{path} {problem}.", hint="Restore it, or delete the run.")


def read_record(path: Path, missing: tuple[type[OSError], ...] = (OSError,)) -> dict[str, Any]:
    """Return the object in a JSON file; empty if the file is missing or damaged.

    Args:
        path: The file.
        missing: The errors of reading that mean that there is no file; others, such as for a pipe, are raised.
    """
    record = None
    with suppress(*missing, ValueError, RecursionError):
        record = json.loads(read_bounded(path))
    return record if isinstance(record, dict) else {}


class FileLock:
    """A lock on a file that the kernel releases when the process dies, however it dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def acquire(self, *, blocking: bool = False) -> bool:
        """Take the lock; return False if another holder has it and `blocking` is False."""
        file = self.path.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if blocking else fcntl.LOCK_NB))
        except BaseException as error:
            file.close()
            if isinstance(error, BlockingIOError):
                return False
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
        if self.path.is_file():  # opening a pipe could never end
            # open for reading, because nothing may be writable
            with suppress(FileNotFoundError), self.path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return True
        return False

    def __enter__(self) -> FileLock:
        self.acquire(blocking=True)
        return self

    def __exit__(self, *_exception: object) -> None:
        self.release()
