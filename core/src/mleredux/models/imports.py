"""Names of a package that are imported on first use, so that a program imports no more than it needs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def on_first_use(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], list[str]]:
    """Return the `__getattr__` of a package, and the names that it finds, sorted.

    Args:
        package: The package's name.
        homes: The names by module, separated by spaces; a module's name starts with a dot if it is in the package.
    """
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(modules[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    return find, sorted(modules)
