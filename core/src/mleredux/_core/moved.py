"""Names that have moved from `mleredux.plugin` to kits: importable from their old module until 0.4, with a warning."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Collection
from typing import Any


def moved(old: str, kit: str, names: Collection[str] | None = None, *, depth: int = 2) -> Callable[[str], Any]:
    """Return the `__getattr__` of the module `old`, whose names have moved to a kit.

    It raises AttributeError for other names, and ImportError if the kit is not installed.

    Args:
        old: The name of the old module.
        kit: The name of the kit's package.
        names: The names that have moved; None: all public names of the kit.
        depth: The number of calls between the warning and the importing code.
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
