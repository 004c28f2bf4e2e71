"""The process that imports plugins one by one to record what they register: see `index`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mleredux._core.plugins.catalogue import Catalogue
from mleredux._core.plugins.discovery import KINDS, Plugin
from mleredux._core.plugins.index import stamp, watched
from mleredux._core.plugins.loader import implemented_hooks
from mleredux.errors import PluginError


def main(request: dict[str, Any]) -> None:
    """Write a line of JSON before and after each plugin, to identify the plugin that ends this process."""
    with Path(request["answer"]).open("w", encoding="utf-8") as answer:
        for fields in request["plugins"]:
            for record in describe(Plugin(*fields)):
                answer.write(json.dumps(record) + "\n")
                answer.flush()


def describe(plugin: Plugin) -> Iterator[dict[str, Any]]:
    """Yield the record of a plugin before and after it is imported."""
    places = watched(plugin.target.partition(":")[0].partition(".")[0], plugin.distribution)
    record: dict[str, Any] = {
        "name": plugin.name,
        "of": [plugin.target, plugin.distribution, plugin.version],
        "watched": places,
        "stamp": stamp(places),  # before it is imported: later changes are detected next time
    }
    yield record
    catalogue = Catalogue(plugins=[plugin])
    registered: dict[str, Any] = {}
    if catalogue.load_plugin(plugin):
        of_kinds = {f"mleredux_register_{kind}" for kind in KINDS}
        record["hooks"] = [hook for hook in implemented_hooks(plugin, catalogue.manager) if hook not in of_kinds]
        record["withheld"] = plugin.withheld
        record["dynamic"] = [str(kind) for kind in getattr(plugin.object, "mleredux_dynamic", ())]
        for kind in KINDS:
            if kind not in record["dynamic"]:
                registered[kind] = [dataclasses.asdict(ref) for ref in _summarised(catalogue, plugin, kind)]
    yield {**record, **registered, "errors": plugin.errors, "failed": plugin.state == "failed"}


def _summarised(catalogue: Catalogue, plugin: Plugin, kind: str) -> Iterator[Any]:
    """Yield the objects of a type that a plugin registers, with their summaries."""
    from mleredux._core.plugins.summaries import check_and_summarise

    for entry in catalogue.declared(plugin, kind):
        summary = entry.ref.summary
        try:
            checked = check_and_summarise(kind, catalogue.resolved(entry))
            summary = {**summary, **checked, "title": summary.get("title") or checked["title"]}
        except PluginError as error:  # reported again on use
            if not str(error).startswith(tuple(plugin.errors)):
                plugin.errors.append(str(error))
        yield dataclasses.replace(entry.ref, summary=json.loads(json.dumps(summary)))
