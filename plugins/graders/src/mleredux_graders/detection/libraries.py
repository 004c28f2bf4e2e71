"""Libraries of geometry and of COCO, which the extra `detection` installs; imported where they are used."""

from __future__ import annotations

import importlib
from typing import Any

from mleredux.errors import MlereduxError

EXTRA = "mleredux-graders[detection]"
"""What pip installs."""


def imported(module: str) -> Any:
    """A module of the extra.

    Raises:
        MlereduxError: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MlereduxError(
            f"This metric needs the package {module.partition('.')[0]}, which is not installed.",
            hint=f"Install it with `pip install '{EXTRA}'`.",
        ) from error
