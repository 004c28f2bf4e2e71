"""Writing a plugin's index file, so that listing what it registers imports nothing."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from pathlib import Path
from typing import Any

from mleredux._core.plugins.catalogue import Catalogue
from mleredux._core.plugins.discovery import INDEX_FILE, KINDS, Plugin
from mleredux._core.plugins.loader import implemented_hooks
from mleredux._core.plugins.summaries import check_and_summarise
from mleredux.errors import PluginError
from mleredux.hookspecs import CONTRACT_VERSION


def index_path(plugin: Plugin) -> Path:
    """Where a plugin's index file belongs."""
    package = plugin.target.partition(":")[0].partition(".")[0]
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise PluginError(
            f"Plugin {plugin.name!r} is the single module {package}; an index needs a package.",
            hint="Make it a package (a folder with __init__.py), or do without an index.",
        )
    return Path(spec.submodule_search_locations[0]) / INDEX_FILE


def make_index(name: str, catalogue: Catalogue | None = None) -> tuple[Path, str]:
    """The index file of a plugin: its path and what it must hold, from what the plugin itself registers.

    Raises:
        PluginError: The plugin is not known, or can't be loaded.
    """
    catalogue = catalogue or Catalogue()
    plugin = next((plugin for plugin in catalogue.plugins if plugin.name == name), None)
    if plugin is None:
        raise PluginError(f"There is no plugin {name!r}.", hint="See `mleredux plugins`.")
    plugin.index = plugin.hooks = None
    if not catalogue.load_plugin(plugin):
        raise PluginError(" ".join(plugin.errors))
    registered: dict[str, Any] = {"contract": CONTRACT_VERSION}
    registered["hooks"] = [
        hook for hook in implemented_hooks(plugin, catalogue.manager) if not hook.startswith("mleredux_register_")
    ]
    dynamic = tuple(getattr(plugin.object, "mleredux_dynamic", ()))
    if dynamic:
        registered["dynamic"] = list(dynamic)
    for kind in (kind for kind in KINDS if kind not in dynamic):
        entries = catalogue._declared(plugin, kind)
        refs = []
        for entry in entries:
            summary = check_and_summarise(kind, catalogue._resolve(entry))
            refs.append(dataclasses.asdict(dataclasses.replace(entry.ref, summary=summary)))
        if refs:
            registered[kind] = sorted(refs, key=lambda ref: str(ref["id"]))
    if plugin.errors:
        raise PluginError(" ".join(plugin.errors))
    path = index_path(plugin)
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    plugins = {**content.get("plugins", {}), name: registered}
    return path, json.dumps({"plugins": plugins}, indent=1, ensure_ascii=False) + "\n"
