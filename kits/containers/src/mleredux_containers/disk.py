"""The disk of one build: a separate file system for its steps, as large as the build's limit."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mleredux._core.sandboxes.mounts import mount_bind, mount_image, unmount
from mleredux._core.sandboxes.volume import RESERVE, VARIABLE, make_image
from mleredux.plugin.files import remove_tree

_PREFIX = "mleredux-disk-"
_FILES, _FULL = 2_000_000, 2 << 20
_MIB = 1 << 20


@dataclass(frozen=True)
class BuildDisk:
    """A mounted file system of a build.

    Attributes:
        path: The mount point.
    """

    path: Path

    def full(self) -> bool:
        """Return whether the disk is full."""
        status = os.statvfs(self.path)
        return status.f_bavail * status.f_frsize < _FULL or status.f_favail == 0

    def holds(self, place: Path) -> bool:
        """Return whether a path, such as the root of a container, is on this disk."""
        with contextlib.suppress(OSError):
            own, other = os.statvfs(self.path), os.statvfs(place)
            return (own.f_blocks, own.f_files) == (other.f_blocks, other.f_files)
        return False

    @contextlib.contextmanager
    def below(self, folder: Path) -> Iterator[None]:
        """Put an engine's folder with its content on this disk while the body runs, then discard all changes.

        Raises:
            OSError: The folder can't be mounted.
        """
        own = self.path / "layer"
        try:
            if subprocess.run(["cp", "-a", folder, own], capture_output=True).returncode:
                raise OSError(f"{folder} can't be copied")
            mount_bind(own, folder)
            yield
        finally:
            unmount(folder)
            remove_tree(own)


@contextlib.contextmanager
def build_disk(size: int) -> Iterator[BuildDisk | None]:
    """Mount a disk of `size` bytes and yield it, or None if that is impossible; root and a loop device are required."""
    if os.geteuid() or os.environ.get(VARIABLE) == "walk":
        yield None
        return
    top = Path("/var/tmp") if os.access("/var/tmp", os.W_OK) else Path(tempfile.gettempdir())
    for stale in top.glob(f"{_PREFIX}*"):  # left by programs that were killed
        if not Path("/proc", stale.name.removeprefix(_PREFIX).partition("-")[0]).exists():
            remove_tree(stale)
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=top))
    disk: BuildDisk | None = BuildDisk(folder / "disk")
    assert disk is not None
    try:
        disk.path.mkdir()
        # A file system in a file is damaged if the host's disk is full.
        room = max(_MIB, shutil.disk_usage(folder).free - RESERVE)
        make_image(folder / "image", max(1, min(size, room) // _MIB), _FILES)
        mount_image(folder / "image", disk.path)
    except (OSError, subprocess.SubprocessError):
        disk = None
    try:
        yield disk
    finally:
        remove_tree(folder)
