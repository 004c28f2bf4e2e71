"""The disk of one run: a separate file system in a file of the run directory, with the size of the run's limit.

It contains everything that the agent can fill: output, scratch files, log, versions of the submission, uploads.
So the limit holds whatever the agent does. While the agent runs, these folders are mounted at their places in
the run directory; at the end they are moved there, one part of a file at a time. If a file system can't be mounted
(which requires root and a loop device), the folders are ordinary folders of the run directory, and the supervisor
measures their size.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from mleredux._core.sandboxes.mounts import mount_bind, mount_image, mount_shown, unmount
from mleredux._core.store.sparse import copy, move_contents, remove_tree
from mleredux.errors import SandboxError

VARIABLE = "MLEREDUX_DISK_LIMIT"
"""`walk`: never mount a separate file system for a run."""
UNLIMITED = "unlimited-writes"
"""A file in a run's control folder that exists if some of the agent's writes are not covered by a disk limit."""
MAX_FILES = 250_000
"""Maximum number of files and folders on a run's disk."""
INNER = (".smoke", ".verify")
"""Folders of a run directory that contain inner runs, while these are executed."""
EnforcedBy = Literal["volume", "walk"]
_IMAGE, PLACE, _CLOSING, _DATA = ".volume.img", ".volume", ".volume.closing", ".data"
_REFUSED = ".volume.full"
_SHOWN = ("output", "submissions", "task")
_HIDDEN = (".scratch", ".uploads", ".staging")
_LOG = "agent.log"
_DEPTH = 40
_MIB = 1 << 20
_BYTES_PER_FILE, _FEWEST_FILES, _INODE = 16384, 4096, 256
_FULL, _FULL_SHARE, _FULL_FILES = 2 << 20, 8, 16
"""The disk counts as full at this point: a file system refuses large writes while it still has room for small ones."""
_LOG_COPY = 20 << 20
"""Maximum bytes of recent output that an engine stores in addition to the log; they also count toward the limit."""
RESERVE = 256 << 20
"""Bytes to keep free on the host: a file system in a file is damaged if the host's disk is full."""


@dataclass(frozen=True)
class RunDisk:
    """The folders of a run that its agent fills.

    Attributes:
        path: The run directory.
        enforced_by: `volume`: a file system of the limit's size; `walk`: the supervisor measures files about once a
            second.
    """

    path: Path
    enforced_by: EnforcedBy

    @property
    def scratch(self) -> Path:
        """The folder for the agent's temporary files."""
        return self._hidden(".scratch")

    @property
    def uploads(self) -> Path:
        """The folder for uploads to the validation endpoint."""
        return self._hidden(".uploads")

    @property
    def staging(self) -> Path:
        """A folder for files that a sandbox mounts for the agent; its path reveals nothing when seen in the mount
        table."""
        return self._hidden(".staging")

    def _hidden(self, name: str) -> Path:
        if self.enforced_by == "volume":
            return self.path / PLACE / name
        folder = self.path / name
        folder.mkdir(exist_ok=True)
        return folder

    @property
    def counted(self) -> tuple[Path, ...]:
        """The folders whose content the supervisor must count against the limit."""
        return (self.path / "output", self.path / "logs", self.path / "submissions", self.scratch, self.uploads)

    def note_refused(self) -> None:
        """Record that the disk had no room for an upload to the agent's validation endpoint."""
        (self.path / _REFUSED).touch()

    def full(self) -> str | None:
        """Return the end of a sentence about how the disk is full; None if it has room, or if files must be counted."""
        if (self.path / _REFUSED).exists():
            return "uploaded more than its disk has room for"
        if self.enforced_by == "walk":
            return None
        status = os.statvfs(self.path / PLACE)
        copied = min((self.path / PLACE / _LOG).stat().st_size, _LOG_COPY)
        if status.f_bavail * status.f_frsize < copied + min(_FULL, status.f_blocks * status.f_frsize // _FULL_SHARE):
            return "filled its disk"
        if status.f_favail < _FULL_FILES:
            return f"made {status.f_files - status.f_favail:,} files and folders, the maximum for its disk"
        return None

    def check_host(self) -> None:
        """Check that the disk of the runs directory, which does not count toward the agent's limit, has room.

        Raises:
            SandboxError: The disk is nearly full.
        """
        status = os.statvfs(self.path)
        free, size = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
        if free < min(RESERVE, size // 8) + self._unwritten():
            raise SandboxError(
                f"The disk of {self.path.parent} is nearly full: {free // _MIB} MB is free.",
                hint="Free some disk space, or choose another folder with --runs-dir.",
            )

    def _unwritten(self) -> int:
        """Return the bytes of the volume that exist only in memory and will need room on the host."""
        if self.enforced_by == "walk":
            return 0
        status = os.statvfs(self.path / PLACE)
        written = (self.path / _IMAGE).stat().st_blocks * 512
        return max(0, (status.f_blocks - status.f_bfree) * status.f_frsize - written)

    def show(self, folder: Path) -> Path | None:
        """Return a path for a folder that reveals nothing about it, neither by itself nor in the agent's mount table.

        Returns:
            The path; None if neither a mount nor links to the folder's files can be created.
        """
        place = self.path / _DATA
        if os.path.ismount(place) or place.is_dir():
            return place
        place.mkdir()
        try:
            mount_shown(folder, place)
        except OSError:
            place.rmdir()
            try:
                shutil.copytree(folder, place, copy_function=os.link)
            except (OSError, shutil.Error):
                _remove_links(place)
                return None
        return place

    def empty_scratch(self) -> None:
        """Delete temporary files, once the agent has ended."""
        for folder in (self.scratch, self.uploads):
            _remove(folder)

    def close(self) -> list[str]:
        """Move the files to keep into the run directory, and remove the rest. If interrupted, the next call completes
        it.

        Returns:
            The paths of files that could not be moved.
        """
        failed: list[str] = []
        if self.enforced_by == "volume":
            failed = self._move()
        drop_disk(self.path)
        return failed

    def _move(self) -> list[str]:
        _unmount_shown(self.path)
        volume, closing = self.path / PLACE, self.path / _CLOSING
        if not closing.exists():
            for name in ("output", "task"):
                _remove(self.path / name)
            closing.touch()
        failed = []
        for name in _SHOWN:
            (self.path / name).mkdir(exist_ok=True)
            failed += [f"{name}/{left}" for left in move_contents(volume / name, self.path / name, _DEPTH)]
        for missing in (volume / _LOG, self.path / "logs" / _LOG):  # a full disk may have rejected this write
            missing.touch()
        with (volume / _LOG).open("r+b") as log, (self.path / "logs" / _LOG).open("r+b") as kept:
            copy(log.fileno(), kept.fileno(), (volume / _LOG).stat().st_size, move=True)
        return failed


def open_disk(path: Path, megabytes: int, *, going_on: bool) -> RunDisk:
    """Return the existing disk of a run that is resumed, or else a new one.

    Args:
        path: The run directory.
        megabytes: The run's limit.
        going_on: Whether a previously started agent may still be running.

    Raises:
        SandboxError: The disk of the runs directory is nearly full.
    """
    here = RunDisk(path, "walk")
    here.check_host()
    if (path / _CLOSING).exists():
        close_disk(path)
    elif not (path / _IMAGE).exists() and (going_on or os.geteuid() or os.environ.get(VARIABLE) == "walk"):
        return here
    try:
        if not (path / _IMAGE).exists():
            make_image(path / _IMAGE, megabytes, folders=(*_SHOWN, *_HIDDEN))
        elif not os.path.ismount(path / PLACE):
            subprocess.run(["e2fsck", "-p", "-f", path / _IMAGE], capture_output=True)
        _mount(path)
    except (OSError, subprocess.SubprocessError):
        drop_disk(path)
        return here
    return RunDisk(path, "volume")


def find_disk(path: Path) -> RunDisk:
    """Return the disk of a run, as it was opened."""
    return RunDisk(path, "volume" if os.path.ismount(path / PLACE) else "walk")


def close_disk(path: Path) -> None:
    """Close the disk, if any, of a run whose program was killed.

    Raises:
        OSError: The disk can't be mounted again.
    """
    if (path / _IMAGE).exists():
        if not os.path.ismount(path / PLACE):
            subprocess.run(["e2fsck", "-p", "-f", path / _IMAGE], capture_output=True)
            mount_image(path / _IMAGE, path / PLACE)
        RunDisk(path, "volume").close()
    drop_disk(path)


def remaining_disks(runs: Path) -> list[Path]:
    """Return the run directories in a runs directory whose disks, or those of their inner runs, are open."""
    return sorted({disk.parent for name in (_IMAGE, _DATA, *INNER) for disk in runs.glob(f"*/{name}")})


def drop_disk(path: Path) -> None:
    """Remove the disk of a run with all its content."""
    _unmount_shown(path)
    for name in (PLACE, _DATA):
        unmount(path / name)
    for name in (_IMAGE, _CLOSING, _REFUSED):
        (path / name).unlink(missing_ok=True)
    _remove_links(path / _DATA)
    for name in (PLACE, *_HIDDEN):
        _remove(path / name)


def make_image(image: Path, megabytes: int, most_files: int = MAX_FILES, folders: tuple[str, ...] = ()) -> None:
    """Create a sparse file with a file system of empty folders that has this much room, excluding its own tables.

    Raises:
        OSError: The file can't be written, or `mkfs.ext4` is not installed.
        subprocess.SubprocessError: The file system can't be created.
    """
    size = megabytes * _MIB
    files = max(_FEWEST_FILES, min(size // _BYTES_PER_FILE, most_files))
    length = size + size // 256 + files * _INODE + (256 << 10)
    with image.open("wb") as file:
        copy(_empty_image(length, files, folders), file.fileno(), length)


@cache
def _empty_image(size: int, files: int, folders: tuple[str, ...]) -> int:
    """Return a nameless file with a file system of empty folders, which is faster to copy than to create."""
    options = ("-b4096", "-m0", "-O^has_journal,^resize_inode", f"-N{files}", "-Elazy_itable_init=1,nodiscard")
    with tempfile.NamedTemporaryFile(prefix="mleredux-disk-") as file, tempfile.TemporaryDirectory() as root:
        for name in folders:
            Path(root, name).mkdir()
        file.truncate(size)
        subprocess.run(["mkfs.ext4", "-F", "-q", "-d", root, *options, file.name], check=True, capture_output=True)
        return os.dup(file.fileno())


def _mount(path: Path) -> None:
    volume = path / PLACE
    volume.mkdir(exist_ok=True)
    if not os.path.ismount(volume):
        mount_image(path / _IMAGE, volume)
    for name in (*_SHOWN, *_HIDDEN):
        (volume / name).mkdir(exist_ok=True)
    (volume / _LOG).touch()
    (path / "logs" / _LOG).touch()
    for name in _SHOWN:
        (path / name).mkdir(exist_ok=True)
        if not os.path.ismount(path / name):
            if name == "output":  # the run's initial files, such as code that is executed again
                move_contents(path / name, volume / name)
            mount_bind(volume / name, path / name)
    if not os.path.ismount(path / "logs" / _LOG):
        mount_bind(volume / _LOG, path / "logs" / _LOG)


def _unmount_shown(path: Path) -> None:
    for place in (*(path / name for name in _SHOWN), path / "logs" / _LOG):
        unmount(place)


def _remove(folder: Path) -> None:
    """Remove a folder; fast if it is empty, as it usually is."""
    try:
        folder.rmdir()
    except OSError:
        remove_tree(folder)


def _remove_links(folder: Path) -> None:
    """Remove links to files without changing their modes, which are those of the linked files."""
    if not os.path.ismount(folder):
        shutil.rmtree(folder, ignore_errors=True)
