"""Keeping every version of the submission file, while the agent works."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from mleredux.store import Run
from mleredux.submissions.validation import MAX_BYTES, open_regular

MAX_VERSIONS = 500
MAX_TOTAL_BYTES = 8 << 30


@dataclass(frozen=True)
class _Stamp:
    inode: int
    size: int
    mtime_ns: int


class Snapshots:
    """Watches one file of a run's output folder, and copies each version into `submissions/`.

    A version is copied once it has not changed between two looks, so that one being written is not taken.

    Args:
        run: The run.
        file: Name of the submission file.
    """

    def __init__(self, run: Run, file: str) -> None:
        self.run = run
        self.source = run.output_dir / file
        self.ending = Path(file).suffix
        self._last_look: _Stamp | None = None
        self._taken: _Stamp | None = None
        versions = run.submissions()
        self._count = len(versions)
        self._bytes = sum(version.size for version in versions)

    def look(self) -> None:
        """Take a new version if there is one that rests."""
        stamp = self._stamp()
        resting = stamp is not None and stamp == self._last_look
        self._last_look = stamp
        if resting and stamp != self._taken and self._count < MAX_VERSIONS and self._bytes < MAX_TOTAL_BYTES:
            self._take()

    def finish(self) -> tuple[Path | None, str | None]:
        """Take the last version; the agent is gone.

        Returns:
            The file to grade, or None and why there is none: the end of a sentence that starts with the file's name.
        """
        try:
            with open_regular(self.source) as file:
                if os.fstat(file.fileno()).st_size > MAX_BYTES:
                    return None, f"is larger than {MAX_BYTES >> 30} GiB"
        except OSError as error:
            return None, str(error)
        if self._stamp() != self._taken:
            self._take()
        versions = self.run.submissions()
        return versions[-1].path if versions else None, None

    def _stamp(self) -> _Stamp | None:
        try:
            status = os.lstat(self.source)
        except OSError:
            return None
        return _Stamp(status.st_ino, status.st_size, status.st_mtime_ns)

    def _take(self) -> None:
        try:
            with open_regular(self.source) as file:
                status = os.fstat(file.fileno())
                stamp = _Stamp(status.st_ino, status.st_size, status.st_mtime_ns)
                if status.st_size > MAX_BYTES:
                    return
                path = self.run.path / "submissions" / f"{self._count + 1:04d}{self.ending}"
                with path.open("wb") as copy:
                    shutil.copyfileobj(file, copy, 1 << 20)
        except OSError:
            return  # gone or replaced meanwhile: the next look sees what is there
        self._taken = stamp
        self._count += 1
        self._bytes += path.stat().st_size
        self.run.emit(
            "submission",
            number=self._count,
            path=str(path.relative_to(self.run.path)),
            size=path.stat().st_size,
        )
