"""Check whether the disk has room for the data of tasks, before anything is written."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mleredux._core.data.archives import unpacked_size
from mleredux.errors import DataError
from mleredux.models import Task
from mleredux.models.formats import counted
from mleredux.models.formats import size as size_text

if TYPE_CHECKING:
    from mleredux._core.data.datastore import DataStore

_FETCHED = 2.5
"""Space for the archive, the raw files, and the public and private files, as a multiple of the declared size: the
archive is deleted before all prepared files exist, and some tables are written twice."""
_LINKED = 1.0
"""Space saved if prepared files are links to raw files, which are removed later, as a multiple of the declared size."""


def check(
    store: DataStore, tasks: Sequence[Task], *, source: Path | None = None, jobs: int = 1, keep_raw: bool = False
) -> None:
    """Raise an error if the disk has too little room.

    Args:
        store: The store of data.
        tasks: The tasks to prepare.
        source: A folder or zip file with the raw data, if there is only one task.
        jobs: The number of tasks that are prepared at the same time.
        keep_raw: Whether raw data is kept, so that prepared files are copies.

    Raises:
        DataError: There is too little space; the message states how much is missing.
    """
    place = next(folder for folder in (store.path, *store.path.parents) if folder.exists())
    links = not keep_raw and _links_work(place)
    peaks = sorted((_needed(store, task, source, links) for task in tasks), reverse=True)
    stays = [_size(task) for task in tasks]
    # Prepared data remains; `jobs` tasks reach their peak at the same time.
    needed = max(sum(peaks[:jobs]), sum(stays) + sum(peaks[:jobs]) - sum(sorted(stays, reverse=True)[:jobs]))
    free = shutil.disk_usage(place).free
    if needed > free:
        what = tasks[0].id if len(tasks) == 1 else counted(len(tasks), "task")
        raise DataError(
            f"Preparing {what} needs about {size_text(needed)} in {store.path}; {size_text(free)} is free there: "
            f"{size_text(needed - free)} more is needed.",
            hint="Free some disk space, choose another folder with --data-dir, or continue with --ignore-space.",
        )


def _size(task: Task) -> float:
    return (task.resources.size_gb or 0) * 1e9


def _needed(store: DataStore, task: Task, source: Path | None, links: bool) -> float:
    size, saved = _size(task), _LINKED if links else 0
    raw = store.raw(task)
    if source is not None and source.is_file():
        return unpacked_size(source) * (2 - saved)
    if source is not None or (raw.is_dir() and any(raw.iterdir())):
        return size
    here = sum(path.stat().st_size for path in raw.with_name("download").glob("*") if path.is_file())
    return max(size * (_FETCHED - saved / 2) - here, 0)


def _links_work(place: Path) -> bool:
    try:
        with tempfile.TemporaryDirectory(prefix=".links-", dir=place) as folder:
            first = Path(folder) / "1"
            first.touch()
            os.link(first, Path(folder) / "2")
    except OSError:
        return False
    return True
