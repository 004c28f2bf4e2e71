"""Putting files into place without copying their bytes, where the file system allows."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FICLONE = 0x40049409  # linux/fs.h: the target shares the source's blocks until either is written
_COPY_THREADS = 8
_BATCH = 256


class Placer:
    """Places files by the cheapest way that works between two folders, tried once and then kept to.

    A reflink (own inode, shared blocks) comes first, then a hard link, then a copy inside the kernel.
    """

    def __init__(self) -> None:
        self._ways = [_reflink, _hard_link, _copy]

    def place(self, source: Path, target: Path) -> None:
        """Make `target`, in a folder that exists, have the bytes of the file `source`."""
        while True:
            way = self._ways[0]
            try:
                return way(source, target)
            except OSError as error:
                if way is _copy or error.errno not in _NOT_SUPPORTED:
                    raise
                if self._ways[0] is way:
                    self._ways.pop(0)

    def place_all(self, pairs: Iterable[tuple[Path, Path]]) -> None:
        """Place many files; copies, where they are needed, overlap."""
        todo = list(pairs)
        for folder in {target.parent for _, target in todo}:
            folder.mkdir(parents=True, exist_ok=True)
        if todo:
            self.place(*todo[0])
        batches = [todo[start : start + _BATCH] for start in range(1, len(todo), _BATCH)]
        with ThreadPoolExecutor(_COPY_THREADS if self._ways[0] is _copy else 1) as pool:
            for _ in pool.map(self._place_batch, batches):
                pass

    def _place_batch(self, batch: list[tuple[Path, Path]]) -> None:
        for source, target in batch:
            self.place(source, target)


_NOT_SUPPORTED = frozenset(
    {
        errno.EXDEV,
        errno.EPERM,
        errno.EACCES,
        errno.EMLINK,
        errno.EOPNOTSUPP,
        errno.ENOTTY,
        errno.EINVAL,
        errno.ENOSYS,
    }
)


def _reflink(source: Path, target: Path) -> None:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "reflinks are known here for Linux only")
    import fcntl

    with source.open("rb") as reader:
        try:
            with target.open("xb") as writer:
                fcntl.ioctl(writer.fileno(), FICLONE, reader.fileno())
        except FileExistsError:
            raise
        except OSError:
            target.unlink(missing_ok=True)
            raise


def _hard_link(source: Path, target: Path) -> None:
    if source.is_symlink():  # the link of a link would point to nowhere
        source = source.resolve()
    os.link(source, target)


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
