"""Optional reader packages: extras of the distribution, imported when used."""

from __future__ import annotations

import importlib
from typing import Any

from mleredux.errors import DataError

DISTRIBUTION = "mleredux-competition-mlebench"


def require(module: str, extra: str) -> Any:
    """Import a module that is installed by an extra.

    Raises:
        DataError: The module is not installed; the message names the extra.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise DataError(
            f"This competition's data requires the package {module.partition('.')[0]}, which is not installed.",
            hint=f"Install it with `pip install '{DISTRIBUTION}[{extra}]'`.",
        ) from error
