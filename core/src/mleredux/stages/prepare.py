"""First stage: the task's public and private files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mleredux.data import DataStore, Prepared
from mleredux.models import Task
from mleredux.plugins import Catalogue


def prepare(
    task: Task,
    catalogue: Catalogue,
    data: DataStore,
    *,
    force: bool = False,
    source: Path | None = None,
    keep_raw: bool = False,
    progress: Callable[[str], None] = lambda _message: None,
) -> Prepared:
    """Prepare a task's files, unless they are there.

    Args:
        task: The task.
        catalogue: Plugins.
        data: Where raw and prepared data are.
        force: Prepare again what is prepared.
        source: A folder or zip with the raw data.
        keep_raw: Keep raw data that were fetched or unpacked.
        progress: Told what is going on.

    Raises:
        DataError: Raw data are missing or damaged.
        TaskBroken: Preparing failed, or gave other bytes than published.
    """

    def preparer(task: Task, raw: Path, public: Path, private: Path) -> bool | None:
        result: bool | None = catalogue.hook("mleredux_prepare")(task=task, raw=raw, public=public, private=private)
        return result

    return data.prepare(task, preparer, force=force, source=source, keep_raw=keep_raw, progress=progress)
