"""A cache of pip downloads that builds share.

It is mounted only for steps that execute no code of an agent (`Build.shared_steps`): only the base image's pip runs in
them, which installs wheels by name. No code of an agent or a package runs while the cache is accessible, so no build
can tamper with another.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from mleredux.plugin.files import cache_dir

DOWNLOADS = "/var/tmp/mleredux-pip"
"""The path of the cache in a step."""
DOWNLOADS_VARIABLE = "MLEREDUX_PIP_CACHE"
"""The variable that contains pip's option for the cache in such a step."""
_MOST_BYTES = 5 << 30


def downloads() -> Path:
    """Return the folder of the cache on this machine, after removing its oldest files if it is too large."""
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
    """Return the total size of the cached files in bytes."""
    return sum(status.st_size for _, status in _files(folder))


def _files(folder: Path) -> list[tuple[Path, os.stat_result]]:
    files = []
    for parent, _folders, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                path = Path(parent, name)
                files.append((path, path.lstat()))
    return files
