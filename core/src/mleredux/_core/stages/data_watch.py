"""Whether an agent changed the prepared data, where no sandbox keeps it from that."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from mleredux._core.data.datastore import SPOILED_FILE
from mleredux._core.store import Run
from mleredux.models.events import DataNoted

_CHANGED = "The task's prepared files changed while the agent worked; they are prepared again for the next run."


def note_data(run: Run, prepared: Path, *, going_on: bool) -> None:
    """Note what the data looks like before the agent starts; a run that goes on keeps its note for the same data.

    On another machine, or prepared again, it is other data.
    """
    folder, files = stamp(prepared)
    noted = run.log.state.data_stamp or ""
    if not going_on or noted.partition(":")[0] != folder:
        run.emit(DataNoted(status="noted", stamp=f"{folder}:{files}"))


def check_data(run: Run, prepared: Path) -> None:
    """See whether the data is unchanged; where not, the run says so and the data is marked as spoiled."""
    noted = run.log.state.data_stamp
    if noted and ":".join(stamp(prepared)) != noted:
        with contextlib.suppress(OSError):
            (prepared / SPOILED_FILE).touch()
        run.emit(DataNoted(status="changed", message=_CHANGED))


def stamp(prepared: Path) -> tuple[str, str]:
    """What tells quickly which folder this is, and whether files in it were changed.

    Returns:
        Hashes of its path and inode, and of the paths, modes, sizes, and times of last change of its files.
    """
    try:
        inode = prepared.stat().st_ino
    except OSError:
        inode = 0
    digest = hashlib.sha256()
    left = [prepared / "public", prepared / "private"]
    while left:
        folder = left.pop()
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            digest.update(f"{folder}: {error.strerror}\0".encode(errors="surrogateescape"))
            continue
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                left.append(Path(entry.path))
            else:
                line = f"{entry.path}\0{status.st_mode}\0{status.st_size}\0{status.st_mtime_ns}\0"
                digest.update(line.encode(errors="surrogateescape"))
    return hashlib.sha256(f"{prepared}\0{inode}".encode()).hexdigest()[:16], digest.hexdigest()
