"""Import a plugin, check it against the contract, and register it with pluggy, isolated from other plugins."""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pluggy

from mleredux import hookspecs
from mleredux._core.plugins import former
from mleredux._core.plugins.calls import without_output
from mleredux._core.plugins.discovery import KINDS, SINGULAR, Entry, Plugin, Ref
from mleredux.errors import PluginError, foreign_code, is_interrupt, one_line

_PLUGIN_FILE_MARK = "__mleredux_plugin_file__"


def make_manager(trace: Callable[[str], None] | None = None) -> pluggy.PluginManager:
    """Create an empty pluggy manager with the contract's hooks.

    Args:
        trace: Called for each hook call, if given.
    """
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.add_hookspecs(former)
    if trace is not None:
        manager.trace.root.setwriter(trace)
        manager.enable_tracing()
    return manager


def load(plugin: Plugin, manager: pluggy.PluginManager) -> bool:
    """Import and register a plugin once; problems are recorded in `plugin.errors`.

    Returns:
        Whether the plugin is usable.
    """
    if plugin.state != "found":
        return plugin.state == "loaded"
    try:
        plugin.object = _import(plugin)
        if _contract_fits(plugin, getattr(plugin.object, "mleredux_contract", None), dir(plugin.object)):
            manager.register(plugin.object, plugin.name)
            _check_hooks(plugin, manager)
            plugin.withheld = tuple(map(str, getattr(plugin.object, "mleredux_withheld", ())))
            plugin.state = "loaded"
    except BaseException as error:  # SystemExit, and exceptions of test runners
        if is_interrupt(error):
            raise
        problem = (
            f"can't be imported from {plugin.target} ({one_line(error)}{_where(error)}); fix or uninstall "
            f"{plugin.distribution or 'it'}, or block it with --block {plugin.name}."
        )
        if manager.has_plugin(plugin.name):
            manager.unregister(name=plugin.name)
        if plugin.object is not None and isinstance(error, pluggy.PluginValidationError | ValueError):
            reason = " ".join(str(error).split())
            problem = f"violates the contract: {reason}. Compare its hooks with mleredux/hookspecs.py."
        plugin.fail(f"Plugin {plugin.name!r} {problem}")
    return plugin.state == "loaded"


def call(plugin: Plugin, manager: pluggy.PluginManager, hook: str, **arguments: Any) -> Iterator[Any]:
    """Call one plugin's own implementations of a hook; the caller must handle exceptions."""
    for implementation in getattr(manager.hook, hook).get_hookimpls():
        if implementation.plugin is plugin.object:
            yield implementation.function(*(arguments[name] for name in implementation.argnames))


def implemented_hooks(plugin: Plugin, manager: pluggy.PluginManager) -> tuple[str, ...]:
    """Return the names of the hooks that a loaded plugin implements."""
    return tuple(sorted({caller.name for caller in manager.get_hookcallers(plugin.object) or ()}))


def resolve(ref: Ref) -> Any:
    """Import the target of a ref.

    Raises:
        ImportError: The module does not exist.
        AttributeError: The module does not have the attribute.
        ValueError: The target is not of the form `package.module:attribute`.
    """
    return resolve_name(ref.target or "")


def imported(entry: Entry) -> Any:
    """Import the target of an entry, and check it.

    Raises:
        PluginError: The object can't be imported, or does not match its entry.
    """
    from mleredux._core.plugins.summaries import check_and_summarise

    item = f"The {SINGULAR[entry.kind]} {entry.id!r} of plugin {entry.plugin.name!r}"
    message = f"{item} can't be loaded from {entry.ref.target}"
    hint = f"Fix or reinstall {entry.plugin.distribution or 'it'}."
    try:
        with without_output(), foreign_code(PluginError, message, hint, passed=()):
            loaded = resolve(entry.ref)
            summary = check_and_summarise(entry.kind, loaded)
    except PluginError as error:
        entry.plugin.report(error.message)
        raise
    if summary["id"] != (entry.id.rpartition(" ")[2] if entry.kind == "commands" else entry.id):
        raise PluginError(
            f"{entry.ref.target} of plugin {entry.plugin.name!r} has the id {summary['id']!r}, not {entry.id!r}.",
            hint="Use the same id in both places.",
        )
    return loaded


def _import(plugin: Plugin) -> Any:
    if plugin.source == "file":
        spec = importlib.util.spec_from_file_location(plugin.name, plugin.target)
        if spec is None or spec.loader is None:
            raise ImportError(f"{plugin.target} is not a Python file")
        taken = plugin.name in sys.modules or plugin.name in sys.stdlib_module_names
        # Another project's plugin file of the same name is replaced; any other module is not.
        if taken and not hasattr(sys.modules.get(plugin.name), _PLUGIN_FILE_MARK):
            raise ImportError(f"{plugin.name} is the name of another module; rename the file")
        module = importlib.util.module_from_spec(spec)
        setattr(module, _PLUGIN_FILE_MARK, True)
        before = sys.modules.get(plugin.name)
        sys.modules[plugin.name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[plugin.name]
            if before is not None:
                sys.modules[plugin.name] = before
            raise
        return module
    return resolve_name(plugin.target)


def _contract_fits(plugin: Plugin, contract: object, hooks: Iterable[str]) -> bool:
    if contract is None or contract == hookspecs.CONTRACT_VERSION:
        return True
    if isinstance(contract, int) and 1 <= contract < hookspecs.CONTRACT_VERSION:
        changed = {hook for since, names in hookspecs.CHANGED_HOOKS.items() if since > contract for hook in names}
        if changed.isdisjoint(hooks):
            return True
    if not isinstance(contract, int):
        plugin.fail(
            f"Plugin {plugin.name!r} declares the contract {contract!r}, which is not an integer; "
            f"write mleredux_contract = {hookspecs.CONTRACT_VERSION} in {plugin.target}."
        )
        return False
    which = "a newer mleredux" if contract > hookspecs.CONTRACT_VERSION else f"a newer version of {plugin.name}"
    plugin.fail(
        f"Plugin {plugin.name!r} ({plugin.distribution or plugin.target}) was written for contract {contract}, "
        f"but this version of mleredux supports contract {hookspecs.CONTRACT_VERSION}; install {which}."
    )
    return False


def _check_hooks(plugin: Plugin, manager: pluggy.PluginManager) -> None:
    """Refuse unknown hooks, and let known ones raise only what their callers handle, never SystemExit."""
    implemented = implemented_hooks(plugin, manager)
    former.warn(plugin.name, implemented)
    known = {name for name in (*vars(hookspecs), *vars(former)) if name.startswith("mleredux_")}
    if unknown := sorted(set(implemented) - known):
        raise ValueError(f"it implements unknown hooks: {', '.join(unknown)}")
    for caller in (plugin.source != "built in" and manager.get_hookcallers(plugin.object)) or ():
        for implementation in caller.get_hookimpls():
            if implementation.plugin is plugin.object and caller.name.removeprefix("mleredux_register_") not in KINDS:
                message = f"Plugin {plugin.name!r} failed in {caller.name}"
                guarded = partial(_call, message, implementation.function)
                implementation.function = guarded  # type: ignore[misc]  # pluggy: final


def _call(message: str, function: Callable[..., Any], *arguments: Any) -> Any:
    with foreign_code(PluginError, message, "Fix or block the plugin.", passed=Exception):
        return function(*arguments)


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not re.search("importlib|pkgutil|_core/plugins", frame.filename)]
    return f", {Path(own[-1].filename).name} line {own[-1].lineno}" if own else ""
