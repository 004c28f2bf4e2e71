"""Placement of files without copying their bytes, if the file system allows it.

Reflinks are not used: they share the disk location of the raw files, which are stored class by class.

Paths are plain strings here: there may be millions, and creating a `Path` costs more than creating a link.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from mleredux.plugin.task import neutral_order

_COPY_THREADS = 8
_BATCH = 256
_NOT_SUPPORTED = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.ENOSYS}
)


def make_folders(files: Iterable[str]) -> None:
    """Make the folder of every file, in neutral order."""
    for folder in neutral_order({file.rpartition("/")[0] for file in files}):
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103


class Placer:
    """Places files as hard links, or as in-kernel copies if links do not work, which is determined once."""

    def __init__(self) -> None:
        self._ways = [_hard_link, _copy]

    def place(self, source: str, target: str) -> None:
        """Give `target`, in an existing folder, the bytes of the file `source`."""
        while True:
            way = self._ways[0]
            try:
                return way(source, target)
            except OSError as error:
                if way is _copy or error.errno not in _NOT_SUPPORTED:
                    raise
                if self._ways[0] is way:
                    self._ways.pop(0)

    def place_all(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Place many files; necessary copies run concurrently."""
        todo = list(pairs)
        make_folders(target for _, target in todo)
        self._place_batch(todo[:1])  # determines the method
        if self._ways[0] is not _copy:
            self._place_batch(todo[1:])
            return
        batches = [todo[start : start + _BATCH] for start in range(1, len(todo), _BATCH)]
        with ThreadPoolExecutor(_COPY_THREADS) as pool:
            for _ in pool.map(self._place_batch, batches):
                pass

    def _place_batch(self, batch: list[tuple[str, str]]) -> None:
        for source, target in batch:
            self.place(source, target)


def _hard_link(source: str, target: str) -> None:
    # a link to a link would dangle; Python resolves it only if a folder is passed
    os.link(source, target, src_dir_fd=_root())


@cache
def _root() -> int | None:
    return os.open("/", os.O_RDONLY) if os.link in os.supports_dir_fd else None


def _copy(source: str, target: str) -> None:
    shutil.copyfile(source, target)
