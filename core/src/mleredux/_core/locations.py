"""The data folder. Imports almost nothing, because listing commands use it too."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mleredux._core.moved import variable

if TYPE_CHECKING:
    from pathlib import Path

DATA_VARIABLE = "MLEREDUX_DATA_ROOT"


def cache_place() -> str:
    """Return the path of `mleredux` in the user's cache folder, without the time that importing `pathlib` takes."""
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "mleredux")


def cache_dir() -> Path:
    """Return `mleredux` in the user's cache folder."""
    from pathlib import Path

    return Path(cache_place())


def default_data_dir() -> Path:
    """Return `MLEREDUX_DATA_ROOT`, or `mleredux/data` in the user's cache folder."""
    from pathlib import Path

    return Path(variable(DATA_VARIABLE) or cache_dir() / "data")


def is_prepared(data_dir: Path, task: str) -> bool:
    """Return whether a task seems to be prepared; only checks that the folders exist."""
    prepared = data_dir / task / "prepared"
    return (prepared / "public").is_dir() and (prepared / "private").is_dir()
