"""The environment that child processes need to find the same plugins."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mleredux._core.forkserver import ONE_THREAD
from mleredux._core.plain import plain_path
from mleredux._core.plugins.catalogue import Catalogue
from mleredux._core.plugins.discovery import LOAD_VARIABLE


def requested(catalogue: Catalogue) -> list[str]:
    """Plugins requested by option or variable, in a form that is valid in any folder."""
    names = [*catalogue.load, *(name.strip() for name in os.environ.get(LOAD_VARIABLE, "").split(",") if name.strip())]
    return [str(Path(name).resolve()) if Path(name).exists() else name for name in dict.fromkeys(names)]


def child_environment() -> dict[str, str]:
    """The current environment with this process's import path, without the requested plugins."""
    environment = {name: value for name, value in os.environ.items() if name != LOAD_VARIABLE}
    importable = dict.fromkeys(_joinable(Path(entry or ".").resolve()) for entry in sys.path)
    return {**ONE_THREAD, **environment, "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(importable)}


def _joinable(path: Path) -> str:
    return str(plain_path(path) if os.pathsep in str(path) else path)
