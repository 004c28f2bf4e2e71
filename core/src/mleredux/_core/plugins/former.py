"""Hooks of earlier versions of the contract, which still work until 0.4, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mleredux._core.moved import REMOVAL
from mleredux.errors import PluginError
from mleredux.hookspecs import hookspec

if TYPE_CHECKING:
    from pluggy import HookCaller

REPLACED = {
    **dict.fromkeys(("find_agent", "list_history", "import_task", "open_store", "open_backend"), "register_schemes"),
    "produce_reports": "produce_artifacts",
}
"""Former hooks with the present ones, without the prefix `mleredux_`."""


@hookspec
def mleredux_find_agent(reference: str) -> Any: ...
@hookspec
def mleredux_list_history(reference: str, good: str, bad: str) -> Any: ...
@hookspec
def mleredux_import_task(reference: str) -> Any: ...
@hookspec
def mleredux_open_store(url: str) -> Any: ...
@hookspec
def mleredux_open_backend(url: str) -> Any: ...
@hookspec
def mleredux_produce_reports(run: Any, artifacts: Any) -> Any: ...


def warn(plugin: str, hooks: Iterable[str]) -> None:
    """Warn of each former hook that a plugin implements."""
    for name in sorted(hooks):
        if new := REPLACED.get(name.removeprefix("mleredux_")):
            message = f"Plugin {plugin!r}: {name} is replaced by mleredux_{new}; {REMOVAL}"
            warnings.warn(message, DeprecationWarning, stacklevel=3)


def call(caller: HookCaller, reference: str, *arguments: str) -> Any:
    """Return the result of the only plugin that supports a reference; None if no plugin does.

    Raises:
        PluginError: Several plugins do, so none is used.
    """
    assert caller.spec is not None
    values = dict(zip(caller.spec.argnames, (reference, *arguments), strict=True))
    results = {
        implementation.plugin_name: result
        for implementation in caller.get_hookimpls()
        if (result := implementation.function(*(values[name] for name in implementation.argnames))) is not None
    }
    if len(results) > 1:
        names = sorted(results)
        message = (
            f"{reference.partition(':')[0]!r} references are claimed by plugins {' and '.join(names)}, so none is used."
        )
        raise PluginError(message, hint=f"Block one: `mleredux --block {names[0]} …`.")
    return next(iter(results.values()), None)
