"""Names that moved from `mleredux.plugin` to kits: importable from their old module until 0.3, with a warning."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Collection
from typing import Any


def moved(old: str, name: str, kit: str, names: Collection[str] | None = None) -> Any:
    """Return `name` of a kit, for the module `old` of which it was part.

    Args:
        names: The names that moved; None: all public ones of the kit.

    Raises:
        AttributeError: It is no such name.
        ImportError: The kit is not installed.
    """
    problem = AttributeError(f"module {old!r} has no attribute {name!r}")
    if name.startswith("_") or (names is not None and name not in names):
        raise problem
    try:
        package = importlib.import_module(kit)
    except ModuleNotFoundError as error:
        if error.name != (home := kit.partition(".")[0]):
            raise
        distribution = home.replace("_", "-")
        raise ImportError(f"{old}.{name} is in {kit}. Install it with `pip install {distribution}`.") from None
    if name not in package.__all__:
        raise problem
    warnings.warn(f"{old}.{name} is {kit}.{name}; the old name goes in 0.3.", DeprecationWarning, stacklevel=3)
    return getattr(package, name)
