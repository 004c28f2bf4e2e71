"""Copy, move and remove files of a hostile program: holes remain holes, a file being moved never occupies its space
twice, and trees are removed whatever their depth, their names or the permissions of their folders.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import subprocess
from itertools import groupby, pairwise
from pathlib import Path

from mleredux._core.sandboxes.mounts import unmount_below

_PART = 1 << 20
_PAGE = 4096
_FREED_TOGETHER = 16
"""Number of parts after which freed space is synced to disk: only then does a file system in a file free it on its
host."""
_ZEROS = bytes(_PAGE)
_PUNCH_HOLE = 3
"""`FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE`."""


def copy(source: int, target: int, size: int, *, move: bool = False) -> int:
    """Copy an open file into another at the same positions; holes and pages of zeros become holes.

    Args:
        source: Descriptor of the file; also open for writing if it is moved.
        target: Descriptor of an empty file, or of one that an earlier, killed call was writing.
        size: The number of bytes from the start; a file that shrinks during the copy is filled with zeros.
        move: Whether to free each part of the source once it is in the target.

    Returns:
        The number of bytes that hold data.
    """
    held = at = 0
    os.ftruncate(target, size)
    while at < size:
        try:
            begin = os.lseek(source, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole is left
                break
            raise
        at = min(os.lseek(source, begin, os.SEEK_HOLE), size)
        for place in range(begin, at, _PART):
            data = os.pread(source, min(_PART, at - place), place)
            held += write_pages(data, place, target)
            if move and data:
                _punch(source, place, len(data))
                if place // _PART % _FREED_TOGETHER == _FREED_TOGETHER - 1:
                    os.fsync(source)
    return held


def write_pages(data: bytes, place: int, target: int) -> int:
    """Write the pages that are not zero; return their total size in bytes.

    Args:
        data: The bytes.
        place: Their position in the file.
        target: Descriptor of the file.
    """
    cuts = [0, *range(_PAGE - place % _PAGE, len(data), _PAGE), len(data)]
    held = 0
    for zero, pages in groupby(pairwise(cuts), lambda page: data[slice(*page)] == _ZEROS[: page[1] - page[0]]):
        (begin, end), *others = pages
        end = others[-1][1] if others else end
        while not zero and begin < end:
            wrote = os.pwrite(target, data[begin:end], place + begin)
            begin, held = begin + wrote, held + wrote
    return held


class _Move:
    """A move, with the new place of the first name of each file that has several names."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._moved: dict[int, str] = {}

    def folder(self, source: int, target: int, path: str, depth: int) -> list[str]:
        failed: list[str] = []
        with os.scandir(source) as scan:
            entries = sorted(entry.name for entry in scan)
        for name in entries:
            with contextlib.suppress(OSError):  # another file system, or an existing folder
                os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
                continue
            try:
                status = os.stat(name, dir_fd=source, follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    failed += self._below(name, status, source, target, path, depth)
                else:
                    self._entry(name, status, source, target, path)
            except OSError:
                failed.append(f"{path}{name}")
        return failed

    def _below(self, name: str, status: os.stat_result, source: int, target: int, path: str, depth: int) -> list[str]:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=target)
        if depth <= 1:
            return []
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        below, there = os.open(name, flags, dir_fd=source), -1
        try:
            there = os.open(name, flags, dir_fd=target)
            failed = self.folder(below, there, f"{path}{name}/", depth - 1)
            os.fchmod(there, stat.S_IMODE(status.st_mode) & 0o777 | 0o700)
            os.utime(there, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(below)
            if there >= 0:
                os.close(there)
        if not failed:
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=source)
        return failed

    def _entry(self, name: str, status: os.stat_result, source: int, target: int, path: str) -> None:
        if not stat.S_ISREG(status.st_mode) or status.st_ino in self._moved:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=target)
        if status.st_ino in self._moved:
            os.link(self._moved[status.st_ino], name, src_dir_fd=self._target, dst_dir_fd=target, follow_symlinks=False)
        elif stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
        elif stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode):
            os.mknod(name, stat.S_IFMT(status.st_mode) | 0o600, dir_fd=target)
        elif stat.S_ISREG(status.st_mode):
            _move_file(name, status, source, target)
            if status.st_nlink > 1:
                self._moved[status.st_ino] = f"{path}{name}"
        else:
            raise OSError(errno.EPERM, "is a device")
        os.unlink(name, dir_fd=source)


def _move_file(name: str, status: os.stat_result, source: int, target: int) -> None:
    flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with (
        os.fdopen(os.open(name, os.O_RDWR | flags, dir_fd=source), "r+b", 0) as before,
        os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | flags, 0o600, dir_fd=target), "wb", 0) as after,
    ):
        copy(before.fileno(), after.fileno(), status.st_size, move=True)
        os.fchmod(after.fileno(), stat.S_IMODE(status.st_mode) & 0o777 | 0o400)
        os.utime(after.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))


def _punch(descriptor: int, place: int, size: int) -> None:
    """Free a part of a file, if its file system supports it."""
    ctypes.CDLL(None, use_errno=True).fallocate(descriptor, _PUNCH_HOLE, ctypes.c_int64(place), ctypes.c_int64(size))


def move_contents(source: Path, target: Path, depth: int = 1 << 10) -> list[str]:
    """Move the content of a folder into another one, even on another file system, one part of a file at a time.

    Links are moved as links, and files with several names keep those that are moved. Devices, and entries deeper than
    `depth` folders, are not moved. If a call is killed, the next one completes it.

    Args:
        source: The source folder; entries that can't be moved stay there.
        target: The target folder; existing entries with the same names are replaced.
        depth: The number of levels to move; folders at the last level are moved without their content.

    Returns:
        The names of entries that could not be moved.
    """
    folders = [os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for path in (source, target)]
    try:
        return _Move(folders[1]).folder(folders[0], folders[1], "", depth)
    finally:
        for folder in folders:
            os.close(folder)


def move_file(source: Path, target: Path) -> None:
    """Move one of mleredux's own files; if it is a mount point, move only its content."""
    with contextlib.suppress(OSError):
        source.rename(target)
        return
    target.touch()
    with source.open("r+b") as before, target.open("r+b") as kept:
        copy(before.fileno(), kept.fileno(), os.fstat(before.fileno()).st_size, move=True)
        before.truncate(0)


def remove_tree(path: Path) -> bool:
    """Remove a folder and its content without following links; this never raises because of the content.

    Anything mounted there, as in the run directory of a killed program, is unmounted first.

    `shutil.rmtree` is limited to a thousand levels, and paths to 4,096 bytes; `chmod` and `rm` have neither limit.

    Returns:
        Whether the folder was removed.
    """
    if path.is_dir() and not path.is_symlink():
        unmount_below(path)
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, "--", os.fspath(path)], capture_output=True)
    return not os.path.lexists(path)
