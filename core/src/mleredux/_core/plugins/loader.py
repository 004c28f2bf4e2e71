"""Import a plugin, check it against the contract, and register it with pluggy, isolated from other plugins."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pluggy

from mleredux import hookspecs
from mleredux._core.plugins import former
from mleredux._core.plugins.discovery import SINGULAR, Entry, Plugin, Ref
from mleredux.errors import PluginError, one_line

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
        with redirect_stdout(sys.stderr):  # standard output is for results
            plugin.object = _import(plugin)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, and exceptions of test runners
        plugin.fail(
            f"Plugin {plugin.name!r} can't be imported from {plugin.target} "
            f"({one_line(error)}{_where(error)}); fix or uninstall "
            f"{plugin.distribution or 'it'}, or block it with --block {plugin.name}."
        )
        return False
    if not _contract_fits(plugin, getattr(plugin.object, "mleredux_contract", None), dir(plugin.object)):
        return False
    try:
        manager.register(plugin.object, plugin.name)
        _refuse_unknown_hooks(plugin, manager)
    except (pluggy.PluginValidationError, ValueError) as error:
        if manager.is_registered(plugin.object):
            manager.unregister(plugin.object)
        reason = " ".join(str(error).split())
        plugin.fail(
            f"Plugin {plugin.name!r} violates the contract: {reason}. Compare its hooks with mleredux/hookspecs.py."
        )
        return False
    plugin.withheld = tuple(map(str, getattr(plugin.object, "mleredux_withheld", ())))
    plugin.state = "loaded"
    return True


def call(plugin: Plugin, manager: pluggy.PluginManager, hook: str, **arguments: Any) -> Iterator[Any]:
    """Call one plugin's own implementations of a hook; the caller must handle exceptions."""
    for implementation in getattr(manager.hook, hook).get_hookimpls():
        if implementation.plugin is plugin.object:
            yield implementation.function(*(arguments[name] for name in implementation.argnames))


def implemented_hooks(plugin: Plugin, manager: pluggy.PluginManager) -> tuple[str, ...]:
    """Return the names of the hooks that a loaded plugin implements."""
    return tuple(sorted({caller.name for caller in manager.get_hookcallers(plugin.object) or ()}))


def resolve(ref: Ref, plugin: Plugin) -> Any:
    """Import the target of a ref.

    Args:
        ref: The ref, whose `target` is imported.
        plugin: The plugin that registered it.

    Raises:
        ImportError: The module or attribute does not exist.
    """
    module_name, _, attribute = (ref.target or "").partition(":")
    if not module_name or not attribute:
        raise ImportError(f"{ref.target!r} is not of the form package.module:attribute")
    module = importlib.import_module(module_name)
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise ImportError(f"{module_name} has no {attribute!r}") from None


def imported(entry: Entry) -> Any:
    """Import the target of an entry, and check it.

    Raises:
        PluginError: The object can't be imported, or does not match its entry.
    """
    from mleredux._core.plugins.summaries import check_and_summarise

    try:
        loaded = resolve(entry.ref, entry.plugin)
        summary = check_and_summarise(entry.kind, loaded)
    except (Exception, SystemExit) as error:
        message = (
            f"The {SINGULAR[entry.kind]} {entry.id!r} of plugin {entry.plugin.name!r} can't be loaded from "
            f"{entry.ref.target} ({one_line(error)})."
        )
        entry.plugin.report(message)
        raise PluginError(message, hint=f"Fix or reinstall {entry.plugin.distribution or 'it'}.") from error
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
    module_name, _, attribute = plugin.target.partition(":")
    loaded = importlib.import_module(module_name)
    for part in attribute.split(".") if attribute else ():
        loaded = getattr(loaded, part)
    return loaded


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


def _refuse_unknown_hooks(plugin: Plugin, manager: pluggy.PluginManager) -> None:
    implemented = implemented_hooks(plugin, manager)
    former.warn(plugin.name, implemented)
    known = {name for name in (*vars(hookspecs), *vars(former)) if name.startswith("mleredux_")}
    if unknown := sorted(set(implemented) - known):
        raise ValueError(f"it implements unknown hooks: {', '.join(unknown)}")


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "importlib" not in frame.filename and "mleredux/plugins" not in frame.filename]
    return f", {Path(own[-1].filename).name} line {own[-1].lineno}" if own else ""
