"""Names that were moved or renamed: the old ones work until 0.4, with a warning."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Collection
from typing import Any

REMOVAL = "the old name will be removed in 0.4."
OPTIONS = {
    **dict.fromkeys(("--output-dir", "--into", "--path", "--download", "--export"), "--output"),
    "-o": "-O",
    "--most": "--top",
    "--sessions": "--max-sessions",
    "--expires": "--expires-in",
}
"""Former names of options with the present ones, for commands that accept only the latter."""
VARIABLES = {"MLEREDUX_DATA_ROOT": "MLEREDUX_DATA"}
"""Former names of environment variables, by the present ones."""
METHODS = {"executors": {"give": "submit", "news": "poll", "stop": "cancel", "pull": "fetch"}}
"""Former names of methods of registered objects, with the present ones, by kind."""
NAMES = {
    "mleredux.plugin.agent.lent": "mleredux.plugin.agent.provided_secrets",
    "mleredux.plugin.command.closing_table": "mleredux.plugin.command.print_results",
    "mleredux.plugin.command.see_through": "mleredux.plugin.command.follow_runs",
    "mleredux.plugin.executor.Ticket": "mleredux.plugin.executor.JobSpec",
    "mleredux.plugin.host.Elsewhere": "mleredux_executor_nodes.shared.RemoteRuns",
    "mleredux.plugin.host.ask_child": "mleredux.plugin.host.score_in_child",
    "mleredux.plugin.host.asks_of": "mleredux.plugin.host.requests_of",
    "mleredux.plugin.host.joined": "mleredux.plugin.host.merge_grants",
    "mleredux.plugin.host.lend": "mleredux.plugin.host.provide_secrets",
    "mleredux.plugin.host.looks_prepared": "mleredux.plugin.host.is_prepared",
    "mleredux.plugin.host.next_fence": "mleredux_executor_nodes.shared.new_fence",
    "mleredux.plugin.host.take_away": "mleredux_executor_nodes.shared.revoke_lease",
    "mleredux.plugin.host.within": "mleredux.plugin.host.limit_grants",
}
"""Former names of functions and classes, with the present ones, for modules that call `moved`."""


def variable(name: str) -> str | None:
    """Return the value of a renamed environment variable, set under its present or its former name."""
    if not (value := os.environ.get(name)) and (value := os.environ.get(VARIABLES[name])):
        warnings.warn(f"{VARIABLES[name]} is now {name}; {REMOVAL}", FutureWarning, stacklevel=2)
    return value


def renamed_methods(kind: str, item: Any) -> None:
    """Make methods that an object defines under former names available under their present names."""
    for old, new in METHODS.get(kind, {}).items():
        if hasattr(item, old) and not hasattr(item, new):
            warnings.warn(f"{type(item).__name__}.{old} is now {new}; {REMOVAL}", DeprecationWarning, stacklevel=2)
            setattr(item, new, getattr(item, old))


def moved(old: str, kit: str, names: Collection[str] | None = None, *, depth: int = 2) -> Callable[[str], Any]:
    """Return the `__getattr__` of the module `old`, whose names have moved to a kit, or were renamed.

    It raises AttributeError for other names, and ImportError if the kit is not installed.

    Args:
        old: The name of the old module.
        kit: The name of the kit's package, or `old`.
        names: The names that have moved; None: all public names of the kit, and those in `NAMES`.
        depth: The number of calls between the warning and the importing code.
    """

    def find(name: str) -> Any:
        if name.startswith("_") or (names is not None and name not in names):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        home, _, new = NAMES.get(f"{old}.{name}", f"{kit}.{name}").rpartition(".")
        try:
            package = importlib.import_module(home)
        except ModuleNotFoundError as error:
            if error.name != (top := home.partition(".")[0]):
                raise
            distribution = top.replace("_", "-")
            raise ImportError(f"{old}.{name} is in {home}. Install it with `pip install {distribution}`.") from None
        if not hasattr(package, new):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        warnings.warn(f"{old}.{name} is now {home}.{new}; {REMOVAL}", DeprecationWarning, stacklevel=depth)
        return getattr(package, new)

    return find
