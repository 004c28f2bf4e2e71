"""Copy every version of the submission file while the agent runs."""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from mleredux._core.store import Run
from mleredux._core.store.sparse import copy
from mleredux._core.submissions.files import MAX_BYTES, open_below
from mleredux._core.submissions.intake import IntakeLimits, walk
from mleredux.errors import SandboxError
from mleredux.models import NotSubmitted, Submitted, Unusable
from mleredux.models.events import SubmissionKept

MAX_VERSIONS = 500
MAX_TOTAL_BYTES = 8 << 30
MAX_LIVE_BYTES = 1 << 30
"""Maximum size of a file that is copied while the agent runs; copying a larger one would delay the supervisor."""


_CODE = IntakeLimits(files=200, file_bytes=1 << 20, total_bytes=4 << 20)
_CODE_ENDINGS = (".py", ".ipynb", ".r", ".R", ".jl", ".sh", ".sql", ".toml", ".yaml", ".yml", ".json", ".txt", ".md")


@dataclass(frozen=True)
class _Stamp:
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    """Time of the last change, which the agent can't set, unlike the modification time."""

    @classmethod
    def of(cls, file: BinaryIO) -> _Stamp:
        status = os.fstat(file.fileno())
        return cls(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class Snapshots:
    """Watches one file of a run's output folder, and copies each version into `submissions/`.

    A version is copied once it has not changed between two checks, so that incomplete files are not copied.

    Args:
        run: The run.
        file: Name of the submission file.
    """

    def __init__(self, run: Run, file: str) -> None:
        self.run = run
        self.file = file
        self.ending = Path(file).suffix
        self._last_stamp: _Stamp | None = None
        self._taken: _Stamp | None = None
        versions = run.submissions()
        self._count = len(versions)
        self._bytes = sum(version.size for version in versions)

    def update(self) -> None:
        """Copy a new version if there is one that is no longer changing."""
        with contextlib.suppress(OSError):  # gone or replaced in the meantime: the next check handles it
            with open_below(self.run.output_dir, self.file) as file:
                stamp = _Stamp.of(file)
                resting, self._last_stamp = stamp == self._last_stamp, stamp
                room = self._count < MAX_VERSIONS and self._has_room(file)
                if resting and stamp != self._taken and room and stamp.size <= MAX_LIVE_BYTES:
                    self._take(file, stamp)
            return
        self._last_stamp = None

    def finish(self) -> Submitted:
        """Copy the last version, after the agent has ended.

        Returns:
            The file to grade, or the problem that was found in its place.

        Raises:
            SandboxError: The file exists but could not be stored.
        """
        try:
            file = open_below(self.run.output_dir, self.file)
        except FileNotFoundError:
            return NotSubmitted()
        except OSError as error:
            return Unusable(problem=str(error.strerror or error))
        with file:
            stamp = _Stamp.of(file)
            if stamp.size > MAX_BYTES:
                return Unusable(problem=f"is larger than {MAX_BYTES >> 30} GiB")
            try:
                if stamp != self._taken and not self._take(file, stamp):
                    return Unusable(problem="changed while being read")
            except OSError as error:
                if error.errno == errno.ENOSPC and (moved := self._move(stamp)):
                    return moved
                raise SandboxError(
                    f"The submission could not be saved in {self.run.path}: {error.strerror or error}.",
                    hint="Free some disk space, and resume the run.",
                ) from error
        return self.run.submissions()[-1].path

    def _has_room(self, file: BinaryIO) -> bool:
        """Return whether a version can be stored: at least its size must remain free for the agent's own files."""
        needed = os.fstat(file.fileno()).st_blocks * 512
        status = os.statvfs(self.run.path / "submissions")
        return self._bytes + needed <= MAX_TOTAL_BYTES and 2 * needed <= status.f_bavail * status.f_frsize

    def _move(self, stamp: _Stamp) -> Path | None:
        """Move the file itself to store the last version if there is no room for a copy."""
        number = self._count + 1
        path = self.run.path / "submissions" / f"{number:04d}{self.ending}"
        try:
            (self.run.output_dir / self.file).rename(path)
        except OSError:
            return None
        self.run.emit(SubmissionKept(number=number, path=str(path.relative_to(self.run.path)), size=stamp.size))
        return self.run.submissions()[-1].path

    def _keep_code(self, target: Path) -> int:
        """Copy the small text files of `output/code`, as many as fit; return the number of bytes."""
        source, total, count = self.run.output_dir / "code", 0, 0
        for entry in walk(source, _CODE):
            name = os.fsdecode(entry.path)
            if entry.reason is not None or not name.endswith(_CODE_ENDINGS):
                continue
            with contextlib.suppress(OSError), open_below(source, name) as file:
                data = file.read(_CODE.file_bytes + 1)
                if len(data) > _CODE.file_bytes or total + len(data) > _CODE.total_bytes or count >= _CODE.files:
                    continue
                place = target / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
                total, count = total + len(data), count + 1
        return total

    def _take(self, file: BinaryIO, stamp: _Stamp) -> bool:
        """Copy an open file; return False if it changed during the copy, so that the copy is invalid."""
        number = self._count + 1
        path = self.run.path / "submissions" / f"{number:04d}{self.ending}"
        try:
            with path.open("wb") as kept:
                held = copy(file.fileno(), kept.fileno(), stamp.size)  # stop at the expected size if it grows
            if _Stamp.of(file) != stamp:
                path.unlink()
                return False
        except OSError:
            path.unlink(missing_ok=True)
            raise
        self._taken, self._count = stamp, number
        self._bytes += held + self._keep_code(path.with_name(f"{number:04d}-code"))
        self.run.emit(SubmissionKept(number=number, path=str(path.relative_to(self.run.path)), size=stamp.size))
        return True
