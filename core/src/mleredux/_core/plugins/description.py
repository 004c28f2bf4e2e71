"""The process that imports plugins to tell what they register, one after the other, each apart: see `index`."""

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
    """Write a line of JSON before and after each plugin, so that what ends this process is known."""
    with Path(request["answer"]).open("w", encoding="utf-8") as answer:
        for fields in request["plugins"]:
            for record in describe(Plugin(*fields)):
                answer.write(json.dumps(record) + "\n")
                answer.flush()


def describe(plugin: Plugin) -> Iterator[dict[str, Any]]:
    """What is known of a plugin before it is imported, and after."""
    places = watched(plugin.target.partition(":")[0].partition(".")[0], plugin.distribution)
    record: dict[str, Any] = {
        "name": plugin.name,
        "of": [plugin.target, plugin.distribution, plugin.version],
        "watched": places,
        "stamp": stamp(places),  # before it is imported: what changes meanwhile is found out next time
    }
    yield record
    catalogue = Catalogue(plugins=[plugin])
    registered: dict[str, Any] = {}
    if catalogue.load_plugin(plugin):
        hooks = implemented_hooks(plugin, catalogue.manager)
        record["hooks"] = [hook for hook in hooks if not hook.startswith("mleredux_register_")]
        record["dynamic"] = [str(kind) for kind in getattr(plugin.object, "mleredux_dynamic", ())]
        for kind in KINDS:
            if kind not in record["dynamic"]:
                registered[kind] = [dataclasses.asdict(ref) for ref in _summarised(catalogue, plugin, kind)]
    yield {**record, **registered, "errors": plugin.errors, "failed": plugin.state == "failed"}


def _summarised(catalogue: Catalogue, plugin: Plugin, kind: str) -> Iterator[Any]:
    """What a plugin registers of a kind, with what is listed of each."""
    from mleredux._core.plugins.summaries import check_and_summarise

    for entry in catalogue.declared(plugin, kind):
        summary = entry.ref.summary
        try:
            summary = check_and_summarise(kind, catalogue.resolved(entry))
        except PluginError as error:  # whoever uses it is told too
            if not str(error).startswith(tuple(plugin.errors)):
                plugin.errors.append(str(error))
        yield dataclasses.replace(entry.ref, summary=json.loads(json.dumps(summary)))
