"""First stage: the task's public and private files, and the task fields that depend on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mleredux._core.data.datastore import LEADERBOARD_FILE, OTHER_DATA_NOTE, DataStore, Prepared
from mleredux._core.data.medals import read_leaderboard
from mleredux._core.plugins import Catalogue
from mleredux._core.store.files import read_record
from mleredux.errors import DataError, disk_full
from mleredux.models import Task


def prepare(
    task: Task,
    catalogue: Catalogue,
    data: DataStore,
    *,
    force: bool = False,
    source: Path | None = None,
    keep_raw: bool = False,
    check_space: bool = True,
    progress: Callable[[str], None] = lambda _message: None,
) -> Prepared:
    """Prepare a task's files, unless they are already prepared.

    Args:
        task: The task.
        catalogue: The plugins.
        data: The store of raw and prepared data.
        force: Whether to prepare files even if they are already prepared.
        source: A folder (used in place) or a zip file (unpacked one level) with the raw data.
        keep_raw: Whether to keep raw data that was fetched or unpacked; otherwise it is deleted after preparation.
        check_space: Whether to raise an error at the start if the disk has too little room.
        progress: Called with progress messages; byte counts go only to the progress listener of the thread.

    Raises:
        DataError: Raw data is missing or damaged, or there is too little room.
        TaskBroken: Preparation failed, or its result differs from the published checksums.
    """

    def preparer(task: Task, raw: Path, public: Path, private: Path) -> bool | None:
        result: bool | None = catalogue.hook("mleredux_prepare")(task=task, raw=raw, public=public, private=private)
        return result

    how: dict[str, Any] = {"force": force, "source": source, "keep_raw": keep_raw, "check_space": check_space}
    try:
        return data.prepare(task, preparer, **how, progress=progress)
    except Exception as error:
        if full := disk_full(error):
            raise DataError(full) from error
        raise


def refresh_leaderboard(task: Task, data: DataStore) -> Path:
    """Fetch the current leaderboard; new reports of the task then use it for their percentile.

    Medals are not affected: their thresholds remain those of the task's version.

    Returns:
        The file, a CSV with a column `score`, best first, next to the prepared files.

    Raises:
        DataError: There is no leaderboard to fetch, or the fetched file is not a leaderboard.
    """
    if task.fetch_leaderboard is None:
        raise DataError(f"Task {task.id} has no leaderboard to fetch.", hint="Leave out --leaderboard.")
    path = data.leaderboard(task)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".fetching-{path.name}")
    try:
        task.fetch_leaderboard(fresh)
        scores = read_leaderboard(fresh)
        if scores != sorted(scores, reverse=task.direction == "maximize"):
            raise DataError(f"The fetched leaderboard of {task.id} is not sorted.", hint="The old one was kept.")
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return path


def as_prepared(task: Task, prepared: Path) -> Task:
    """Return the task with information about its prepared files.

    The information is the downloaded leaderboard, or else the one that the preparation wrote next to the answers, and a
    note if the files differ from the published ones.
    """
    boards = [prepared.parent / LEADERBOARD_FILE, prepared / "private" / LEADERBOARD_FILE]
    leaderboard = next((path for path in (boards if task.leaderboard is None else boards[:1]) if path.is_file()), None)
    changes: dict[str, Any] = {"leaderboard": leaderboard} if leaderboard else {}
    if read_record(prepared / "prepared.json", (FileNotFoundError, NotADirectoryError)).get("differences"):
        changes["note"] = " ".join(filter(None, (task.note, OTHER_DATA_NOTE)))
    return task.model_copy(update=changes) if changes else task
