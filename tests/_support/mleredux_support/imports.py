"""Lazy imports: each worker of pytest imports all test files, but uses the libraries of only a few."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any


class _Lazy(ModuleType):
    """Stands for a module, which is imported when one of its public names is first read.

    Private names do not count: in search of fixtures, pytest reads `__wrapped__` of each object of a test file.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)


def lazily(name: str) -> ModuleType:
    """Return the module `name`, which is imported when one of its names is first read.

    Raises:
        ModuleNotFoundError: The module is not installed.
    """
    if importlib.util.find_spec(name) is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return _Lazy(name)
