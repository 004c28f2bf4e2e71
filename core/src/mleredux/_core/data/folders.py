"""Create data folders atomically: each appears complete, and is written by one process at a time."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from mleredux._core.data.progress import report
from mleredux._core.store.files import FileLock
from mleredux.errors import DataError, file_errors


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold a lock file, unless its folder is read-only."""
    held = FileLock(path)
    if not os.access(path.parent, os.W_OK):
        yield
        return
    while not held.acquire():
        report("waiting for another program that is preparing it")
        time.sleep(0.2)
    try:
        yield
    finally:
        held.release()


@contextlib.contextmanager
def scratch_folder(place: Path) -> Iterator[Path]:
    """Yield a temporary folder next to its final path, deleted unless moved there; remains of crashes are removed."""
    prefix = f".making-{place.name}-"
    for leftover in place.parent.glob(f"{prefix}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with file_errors(DataError, f"{place.parent} can't be written", "Choose another with --data-dir."):
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place.parent))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def replace(new: Path, place: Path) -> None:
    """Move a finished folder to its final path. The previous one is deleted only when the new one is complete."""
    old = place.with_name(f".making-{place.name}-old")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    new.rename(place)
    shutil.rmtree(old, ignore_errors=True)
