"""Removing trees that somebody hostile made: any depth, any names, folders without permissions."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

_MAX_OPEN = 64


def remove_tree(path: Path) -> bool:
    """Remove a folder and all below it, following no link; never raises for what lies in there.

    What `shutil.rmtree` does by recursion ends at a thousand levels, and paths end at 4,096 bytes: here, what lies
    deeper than a few levels is first moved up beside the folder's own children.

    Returns:
        Whether it is gone.
    """
    try:
        root = _open_folder(os.fspath(path), None)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        while _remove_children(root):
            continue
    finally:
        os.close(root)
    with contextlib.suppress(OSError):
        path.rmdir()
    return not os.path.lexists(path)


def _remove_children(root: int) -> bool:
    """Remove all below a folder down to `_MAX_OPEN` levels; whether deeper ones were moved up to be removed next."""
    moved = 0
    stack: list[tuple[int, list[str]]] = [(root, _names_in(root))]
    names: list[str] = []  # of the folders on the stack, the root's left out
    while stack:
        folder, left = stack[-1]
        if not left:
            stack.pop()
            if stack:
                os.close(folder)
                with contextlib.suppress(OSError):
                    os.rmdir(names.pop(), dir_fd=stack[-1][0])
            continue
        name = left.pop()
        try:
            if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=folder)
                continue
            with contextlib.suppress(OSError):  # an empty one needs no further look
                os.rmdir(name, dir_fd=folder)
                continue
            below = _open_folder(name, folder)
            if len(stack) < _MAX_OPEN:
                stack.append((below, _names_in(below)))
                names.append(name)
                continue
            os.close(below)
            os.rename(name, f".removing-{secrets.token_hex(8)}", src_dir_fd=folder, dst_dir_fd=root)
            moved += 1
        except OSError:
            continue
    return moved > 0


def _names_in(folder: int) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _open_folder(name: str, parent: int | None) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(OSError):
        os.chmod(name, 0o700, dir_fd=parent)  # a link in its place is refused by the next line
    return os.open(name, flags, dir_fd=parent)
