"""The latest floor from `mleredux audit floor`, stored next to the data of the task."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from mleredux.plugin.command import DataStore
from mleredux.plugin.files import write_atomically
from mleredux.plugin.page import Visit
from mleredux.plugin.task import Task

from mleredux_audit_floor.floor import Floor

_FILE = "floor.json"


def keep(floor: Floor, home: Path) -> None:
    """Write the floor into the folder of the task's data, if it is writable."""
    with suppress(OSError):
        write_atomically(home / _FILE, json.dumps(floor.as_json(), indent=1) + "\n")


def panel(visit: Visit, task: Task) -> dict[str, Any] | None:
    """Return the floor of this version of the task."""
    try:
        floor = json.loads((DataStore(visit.data_dir).home(task) / _FILE).read_text())
    except (OSError, ValueError):
        floor = None
    return {"floor": floor if floor and floor["version"] == task.version else None}
