"""The data folder. Imports almost nothing, because listing commands use it too."""

from __future__ import annotations

import os
from pathlib import Path

from mleredux._core.moved import variable

DATA_VARIABLE = "MLEREDUX_DATA_ROOT"


def cache_dir() -> Path:
    """Return `mleredux` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mleredux"


def default_data_dir() -> Path:
    """Return `MLEREDUX_DATA_ROOT`, or `mleredux/data` in the user's cache folder."""
    return Path(variable(DATA_VARIABLE) or cache_dir() / "data")


def is_prepared(data_dir: Path, task: str) -> bool:
    """Return whether a task seems to be prepared; only checks that the folders exist."""
    prepared = data_dir / task / "prepared"
    return (prepared / "public").is_dir() and (prepared / "private").is_dir()
