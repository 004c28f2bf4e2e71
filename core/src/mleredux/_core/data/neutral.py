"""Make files reveal nothing but their names and bytes: a constant time, and inodes in an order derived from the names.

Raw data is usually sorted by class. Files written in that order reveal it through modification, change and birth times,
inodes, the order in which some file systems list a folder, and the location of their blocks on the disk.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

TIME_NS = 946_684_800 * 10**9
"""2000-01-01 UTC, the modification and access time of all prepared files; zip files can store it in any time zone."""

_BLOCK = 1 << 20


def neutral_order(names: Iterable[str]) -> list[str]:
    """Return names in an order that depends only on the names and reveals nothing: a fixed shuffle."""
    order = sorted(names)
    random.Random(len(order)).shuffle(order)
    return order


def renew(folder: Path, keeps: Callable[[os.stat_result], bool]) -> None:
    """Recreate a folder and its content in neutral order; links to files outside the folder are replaced by copies.

    Args:
        folder: The folder. Nothing else may use it at the same time.
        keeps: Returns whether a file's inode is already neutral; such files are moved, others are copied.

    Raises:
        OSError: The disk is full, or a file is of another type.
    """
    old = folder.rename(folder.with_name(f".{folder.name}-in-any-order"))
    folder.mkdir()
    folders, files = _contents(old)
    for name in sorted(neutral_order(folders), key=lambda name: name.count("/")):
        (folder / name).mkdir()
    for name in neutral_order(files):
        source, target = f"{old}/{name}", f"{folder}/{name}"
        if os.path.islink(source) and not _leads_out(source, old):  # noqa: PTH114
            os.symlink(os.readlink(source), target)  # noqa: PTH115, PTH211
        elif keeps(os.lstat(source)):
            os.rename(source, target)  # noqa: PTH104
        else:
            _copy(source, target)
    shutil.rmtree(old)


def settle_times(folder: Path, *, links: bool = True) -> None:
    """Set all times of a folder and its content, in neutral order, because this sets the change time.

    Args:
        folder: The folder.
        links: Whether to change files with further hard links, too, which may belong to the user.

    Raises:
        OSError: The files belong to another user.
    """
    folders, files = _contents(folder)
    paths = [f"{folder}/{name}" for name in neutral_order(files)]
    paths = [path for path in paths if links or os.lstat(path).st_nlink == 1]
    paths += [f"{folder}/{name}" for name in [*neutral_order(folders), ""]]
    for path in paths:
        settle_time(path)


def settle_time(path: str | Path) -> None:
    """Set the times of a file, if it exists."""
    with contextlib.suppress(FileNotFoundError):
        os.utime(path, ns=(TIME_NS, TIME_NS), follow_symlinks=False)


def inodes(folder: Path) -> set[int]:
    """Return the inodes of all files under a folder."""
    return {os.lstat(f"{folder}/{name}").st_ino for name in _contents(folder)[1]}


def _leads_out(link: str, folder: Path) -> bool:
    """Return whether a link points to a file outside the folder."""
    return os.path.isfile(link) and not Path(link).resolve().is_relative_to(folder.resolve())  # noqa: PTH113


def _copy(source: str, target: str) -> None:
    """Copy one of many files without sharing its blocks, whose location is that of the raw files."""
    with open(source, "rb", buffering=0) as content, open(target, "xb") as file:  # noqa: PTH123
        while block := content.read(_BLOCK):
            file.write(block)


def _contents(root: Path) -> tuple[list[str], list[str]]:
    """Return the paths of all folders and files under a folder, relative to it."""
    folders, files = list[str](), list[str]()
    for name, is_folder in _walk(f"{root}/", ""):
        (folders if is_folder else files).append(name)
    return folders, files


def _walk(root: str, below: str) -> Iterator[tuple[str, bool]]:
    with contextlib.closing(os.scandir(root + below)) as entries:
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            yield below + entry.name, is_folder
            if is_folder:
                yield from _walk(root, f"{below}{entry.name}/")
