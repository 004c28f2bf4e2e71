"""Names that were moved or renamed: the old ones work until 0.4, with a warning."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

GOES = "the old name will be removed in 0.4."
OPTIONS = {
    **dict.fromkeys(("--output-dir", "--into", "--path", "--download", "--export"), "--output"),
    "-o": "-O",
    "--most": "--top",
    "--sessions": "--max-sessions",
}
"""Former names of options with the present ones, for commands that accept only the latter."""
VARIABLES = {"MLEREDUX_DATA_ROOT": "MLEREDUX_DATA"}
"""Former names of environment variables, by the present ones."""
METHODS = {"executors": {"give": "submit", "news": "poll", "stop": "cancel", "pull": "fetch"}}
"""Former names of methods of registered objects, with the present ones, by kind."""


def variable(name: str) -> str | None:
    """Return the value of a renamed environment variable, set under its present or its former name."""
    if not (value := os.environ.get(name)) and (value := os.environ.get(VARIABLES[name])):
        warnings.warn(f"{VARIABLES[name]} is now {name}; {GOES}", FutureWarning, stacklevel=2)
    return value


def renamed_methods(kind: str, item: Any) -> None:
    """Make methods that an object defines under former names available under their present names."""
    for old, new in METHODS.get(kind, {}).items():
        if hasattr(item, old) and not hasattr(item, new):
            warnings.warn(f"{type(item).__name__}.{old} is {new}; {GOES}", DeprecationWarning, stacklevel=2)
            setattr(item, new, getattr(item, old))


def moved(old: str, kit: str, names: Collection[str] | None = None, *, depth: int = 2) -> Callable[[str], Any]:
    """Return the `__getattr__` of the module `old`, whose names have moved to a kit, or were renamed.

    It raises AttributeError for other names, and ImportError if the kit is not installed.

    Args:
        old: The name of the old module.
        kit: The name of the kit's package, or `old`.
        names: The names that have moved, or a mapping to their present names; None: all public names of the kit.
        depth: The number of calls between the warning and the importing code.
    """

    def find(name: str) -> Any:
        if name.startswith("_") or (names is not None and name not in names):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        try:
            package = importlib.import_module(kit)
        except ModuleNotFoundError as error:
            if error.name != (home := kit.partition(".")[0]):
                raise
            distribution = home.replace("_", "-")
            raise ImportError(f"{old}.{name} is in {kit}. Install it with `pip install {distribution}`.") from None
        new = names[name] if isinstance(names, Mapping) else name
        if not hasattr(package, new):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        warnings.warn(f"{old}.{name} is {kit}.{new}; {GOES}", DeprecationWarning, stacklevel=depth)
        return getattr(package, new)

    return find
