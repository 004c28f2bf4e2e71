"""What is true of the data, and how documents are held against it: one module a technique.

Each has `truth(dataset)`, computed once from all rows when the task is prepared, `assess(document, truth)`, and
`TOLERANCES`, which the description tells.
"""

from __future__ import annotations

from types import ModuleType


def module(technique: str) -> ModuleType:
    """The facts of a technique."""
    from importlib import import_module

    return import_module(f"{__name__}.{technique}")
