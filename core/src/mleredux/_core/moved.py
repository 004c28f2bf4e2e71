"""Names that moved from `mleredux.plugin` to kits: importable from their old module until 0.4, with a warning."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Collection
from typing import Any


def moved(old: str, kit: str, names: Collection[str] | None = None, *, depth: int = 2) -> Callable[[str], Any]:
    """Return the `__getattr__` of the module `old`, of which names of a kit were part.

    It raises AttributeError for other names, and ImportError if the kit is not installed.

    Args:
        names: The names that moved; None: all public ones of the kit.
        depth: How many calls are between the warning and who asks.
    """

    def find(name: str) -> Any:
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
        warnings.warn(f"{old}.{name} is {kit}.{name}; the old name goes in 0.4.", DeprecationWarning, stacklevel=depth)
        return getattr(package, name)

    return find
