"""Geometry and COCO libraries of the extra `detection`, imported when used."""

from __future__ import annotations

import importlib
from typing import Any

from mleredux.errors import MlereduxError

EXTRA = "mleredux-graders[detection]"
"""The requirement to install with pip."""


def imported(module: str) -> Any:
    """Import a module of the extra.

    Raises:
        MlereduxError: The module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MlereduxError(
            f"This metric needs the package {module.partition('.')[0]}, which is not installed.",
            hint=f"Install it with `pip install '{EXTRA}'`.",
        ) from error
