"""The cache of pip's downloads that builds share.

It is given to steps alone that execute nothing of an agent's (`Build.shared_steps`): pip of the base image, which
installs wheels by name. Nothing that an agent or a package brings runs while the cache can be written or read, so no
build can put anything into another's.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from mleredux.plugin.files import cache_dir

PLACE = "/var/tmp/mleredux-pip"
"""Where a step finds it."""
VARIABLE = "MLEREDUX_PIP_CACHE"
"""The variable of such a step that holds pip's option for it."""
_MOST_BYTES = 5 << 30


def downloads() -> Path:
    """Return the cache on this machine, its oldest files removed if it is too large."""
    folder = cache_dir() / "pip"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = sorted(_files(folder), key=lambda item: item[1].st_mtime, reverse=True)
    room = _MOST_BYTES
    for path, status in files:
        room -= status.st_size
        if room < 0:
            with contextlib.suppress(OSError):
                path.unlink()
    return folder


def downloads_size(folder: Path) -> int:
    """Return the bytes of its files."""
    return sum(status.st_size for _, status in _files(folder))


def _files(folder: Path) -> list[tuple[Path, os.stat_result]]:
    found = []
    for parent, _folders, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                path = Path(parent, name)
                found.append((path, path.lstat()))
    return found
