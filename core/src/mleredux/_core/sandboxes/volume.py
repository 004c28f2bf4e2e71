"""The disk of one run: a file system of its own in a file of the run directory, as large as the run's limit.

All that grows by the agent's doing lies in it: output, scratch, log, versions of the submission, uploads. So the limit
holds whatever the agent does. In the run directory the parts are seen at their places while the agent works; at the end
they are moved there, a part of a file at a time. Where a file system can't be mounted (that takes root and a loop
device), the folders are the run directory's own, and the supervisor counts what lies in them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mleredux._core.sandboxes.mounts import mount_bind, mount_image, mount_shown, mount_writable, unmount
from mleredux._core.store.sparse import copy, move_contents
from mleredux._core.store.trees import remove_tree
from mleredux.errors import SandboxError

VARIABLE = "MLEREDUX_DISK_LIMIT"
"""`walk`: never mount a file system of a run's own."""
UNLIMITED = "unlimited-writes"
"""A file in a run's control folder if no disk limit holds some of what its agent may write."""
MAX_FILES = 250_000
"""Files and folders that a run may have on its disk."""
INNER = (".smoke", ".verify")
"""Folders of a run directory with runs within the run, while these are executed."""
EnforcedBy = Literal["volume", "walk"]
_IMAGE, _PLACE, _CLOSING, _DATA = ".volume.img", ".volume", ".volume.closing", ".data"
_REFUSED = ".volume.full"
_SHOWN = ("output", "submissions", "task")
_HIDDEN = (".scratch", ".uploads", ".staging")
_LOG = "agent.log"
_DEPTH = 40
_MIB = 1 << 20
_BYTES_PER_FILE, _FEWEST_FILES, _INODE = 16384, 4096, 256
_FULL, _FULL_SHARE, _FULL_FILES = 2 << 20, 8, 16
"""A file system refuses large writes while there is still room for small ones."""
_LOG_COPY = 20 << 20
"""What an engine may keep of the newest output beside the log: it counts too."""
RESERVE = 256 << 20
"""What is left free on the host: a file system in a file breaks where its host's disk is full."""


@dataclass(frozen=True)
class RunDisk:
    """The folders of a run that an agent's doing fills.

    Attributes:
        path: The run directory.
        enforced_by: `volume`: a file system of that size; `walk`: the supervisor counts, about once a second.
    """

    path: Path
    enforced_by: EnforcedBy

    @property
    def scratch(self) -> Path:
        """Room for the agent's temporary files."""
        return self._hidden(".scratch")

    @property
    def uploads(self) -> Path:
        """Room for what is sent to the validation endpoint."""
        return self._hidden(".uploads")

    @property
    def staging(self) -> Path:
        """A folder whose path tells nothing to who sees it mounted, for what a sandbox shows the agent."""
        return self._hidden(".staging")

    def _hidden(self, name: str) -> Path:
        if self.enforced_by == "volume":
            return self.path / _PLACE / name
        folder = self.path / name
        folder.mkdir(exist_ok=True)
        return folder

    @property
    def counted(self) -> tuple[Path, ...]:
        """The folders whose content counts against the limit, where somebody must count it."""
        return (self.path / "output", self.path / "logs", self.path / "submissions", self.scratch, self.uploads)

    def note_refused(self) -> None:
        """Note that the disk had no room for what the agent sent to its validation endpoint."""
        (self.path / _REFUSED).touch()

    def full(self) -> str | None:
        """How the disk is full, as the end of a sentence; None where there is room, or where it must be counted."""
        if (self.path / _REFUSED).exists():
            return "uploaded more than its disk has room for"
        if self.enforced_by == "walk":
            return None
        status = os.statvfs(self.path / _PLACE)
        copied = min((self.path / _PLACE / _LOG).stat().st_size, _LOG_COPY)
        if status.f_bavail * status.f_frsize < copied + min(_FULL, status.f_blocks * status.f_frsize // _FULL_SHARE):
            return "filled its disk"
        if status.f_favail < _FULL_FILES:
            return f"made {status.f_files - status.f_favail:,} files and folders, as many as its disk holds"
        return None

    def check_host(self) -> None:
        """See that the disk of the runs directory, which is not the agent's limit, has room.

        Raises:
            SandboxError: It is nearly full.
        """
        status = os.statvfs(self.path)
        free, size = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
        if free < min(RESERVE, size // 8) + self._unwritten():
            raise SandboxError(
                f"The disk of {self.path.parent} is nearly full: {free // _MIB} MB are free.",
                hint="Free some disk space, or choose another folder with --runs-dir.",
            )

    def _unwritten(self) -> int:
        """Bytes of the volume that are in memory only, and will take room on the host."""
        if self.enforced_by == "walk":
            return 0
        status = os.statvfs(self.path / _PLACE)
        written = (self.path / _IMAGE).stat().st_blocks * 512
        return max(0, (status.f_blocks - status.f_bfree) * status.f_frsize - written)

    def show(self, folder: Path) -> Path | None:
        """A folder at a place whose path, and whose entry in an agent's table of mounts, tells nothing of it.

        Returns:
            The place; None where neither a mount nor links to the folder's files can be made.
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

    def image_root(self, layers: Sequence[Path]) -> Path:
        """The files of an image, such that what is written there lies on the disk of the run, and is there again later.

        Args:
            layers: The folders of the image's layers, the uppermost first.

        Raises:
            OSError: They can't be mounted, or the disk is not a volume.
        """
        if self.enforced_by != "volume":
            raise OSError("is not a volume")
        key = hashlib.sha256("\0".join(map(str, layers)).encode()).hexdigest()[:16]
        changes, place = (self.path / _PLACE / ".image" / key / name for name in ("changes", "root"))
        for folder in (changes, changes.with_name("work"), place):
            folder.mkdir(parents=True, exist_ok=True)
        if not os.path.ismount(place):
            mount_writable(layers, changes, place)
        return place

    def empty_scratch(self) -> None:
        """Make room, once the agent is gone."""
        for folder in (self.scratch, self.uploads):
            _remove(folder)

    def close(self) -> list[str]:
        """Move what is kept into the run directory, and remove the rest. What was killed in it is done by the next one.

        Returns:
            The names of what could not be moved.
        """
        failed: list[str] = []
        if self.enforced_by == "volume":
            failed = self._move()
        drop_disk(self.path)
        return failed

    def _move(self) -> list[str]:
        _unmount_shown(self.path)
        volume, closing = self.path / _PLACE, self.path / _CLOSING
        if not closing.exists():
            for name in ("output", "task"):
                _remove(self.path / name)
            closing.touch()
        failed = []
        for name in _SHOWN:
            (self.path / name).mkdir(exist_ok=True)
            failed += [f"{name}/{left}" for left in move_contents(volume / name, self.path / name, _DEPTH)]
        for missing in (volume / _LOG, self.path / "logs" / _LOG):  # a full disk may have refused it
            missing.touch()
        with (volume / _LOG).open("r+b") as log, (self.path / "logs" / _LOG).open("r+b") as kept:
            copy(log.fileno(), kept.fileno(), (volume / _LOG).stat().st_size, move=True)
        return failed


def open_disk(path: Path, megabytes: int, *, going_on: bool) -> RunDisk:
    """The disk of a run: as it was where the run goes on, else a new one.

    Args:
        path: The run directory.
        megabytes: The run's limit.
        going_on: Whether an agent that was started earlier may be at work.

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
            make_image(path / _IMAGE, megabytes)
        elif not os.path.ismount(path / _PLACE):
            subprocess.run(["e2fsck", "-p", "-f", path / _IMAGE], capture_output=True)
        _mount(path)
    except (OSError, subprocess.SubprocessError):
        drop_disk(path)
        return here
    return RunDisk(path, "volume")


def find_disk(path: Path) -> RunDisk:
    """The disk of a run, as it was opened."""
    return RunDisk(path, "volume" if os.path.ismount(path / _PLACE) else "walk")


def close_disk(path: Path) -> None:
    """Close the disk of a run whose program was killed; nothing where it has none.

    Raises:
        OSError: It can't be mounted any more.
    """
    if (path / _IMAGE).exists():
        if not os.path.ismount(path / _PLACE):
            subprocess.run(["e2fsck", "-p", "-f", path / _IMAGE], capture_output=True)
            mount_image(path / _IMAGE, path / _PLACE)
        RunDisk(path, "volume").close()
    drop_disk(path)


def left_disks(runs: Path) -> list[Path]:
    """The run directories of a runs directory whose disks, or those of runs within the run, are open."""
    return sorted({found.parent for name in (_IMAGE, _DATA, *INNER) for found in runs.glob(f"*/{name}")})


def drop_disk(path: Path) -> None:
    """Remove the disk of a run with all that lies in it."""
    _unmount_shown(path)
    for name in (_PLACE, _DATA):
        unmount(path / name)
    (path / _IMAGE).unlink(missing_ok=True)
    for name in (_CLOSING, _REFUSED):
        (path / name).unlink(missing_ok=True)
    _remove_links(path / _DATA)
    for name in (_PLACE, *_HIDDEN):
        _remove(path / name)


def make_image(image: Path, megabytes: int, most_files: int = MAX_FILES) -> None:
    """A sparse file with an empty file system that has room for so much, beside its own tables.

    Raises:
        OSError: It can't be written, or `mkfs.ext4` is not there.
        subprocess.SubprocessError: The file system can't be made.
    """
    size = megabytes * _MIB
    files = max(_FEWEST_FILES, min(size // _BYTES_PER_FILE, most_files))
    with image.open("wb") as file:
        file.truncate(size + size // 256 + files * _INODE + (256 << 10))
    options = ("-b4096", "-m0", "-O^has_journal,^resize_inode", f"-N{files}", "-Elazy_itable_init=1,nodiscard")
    subprocess.run(["mkfs.ext4", "-F", "-q", *options, image], check=True, capture_output=True)


def _mount(path: Path) -> None:
    volume = path / _PLACE
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
            if name == "output":  # what a run starts with, such as code that is executed again
                move_contents(path / name, volume / name)
            mount_bind(volume / name, path / name)
    if not os.path.ismount(path / "logs" / _LOG):
        mount_bind(volume / _LOG, path / "logs" / _LOG)


def _unmount_shown(path: Path) -> None:
    for place in (*(path / name for name in _SHOWN), path / "logs" / _LOG):
        unmount(place)


def _remove(folder: Path) -> None:
    """Remove a folder, quickly where it is empty, as it mostly is."""
    try:
        folder.rmdir()
    except OSError:
        remove_tree(folder)


def _remove_links(folder: Path) -> None:
    """Remove links to files, whose modes, being those of the files, must stay."""
    if not os.path.ismount(folder):
        shutil.rmtree(folder, ignore_errors=True)
