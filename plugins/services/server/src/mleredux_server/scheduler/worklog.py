"""The log that all workers share: JSON lines, limited to two files of a few megabytes."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mleredux.plugin.files import FileLock

_MOST_BYTES = 8 << 20


class WorkLog:
    """Standard output and error of a worker, appended to a file.

    Args:
        path: The file; `<path>.1` is the previous one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def open(self) -> None:
        """Redirect standard output and error to the file, or to a new one if it is full. Called before each job."""
        with FileLock(self._path.with_suffix(".lock")):
            if self._path.exists() and self._path.stat().st_size > _MOST_BYTES:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.close(descriptor)

    def write(self, event: str, level: str = "info", **facts: Any) -> None:
        """Write one line; if the disk is full, the line is lost, not the worker."""
        line = {
            "timestamp": datetime.now(UTC).isoformat(),
            "level": level,
            "event": event,
            "worker": os.getpid(),
            **facts,
        }
        try:
            sys.stderr.write(json.dumps(line, default=str) + "\n")
            sys.stderr.flush()
        except OSError:
            return
