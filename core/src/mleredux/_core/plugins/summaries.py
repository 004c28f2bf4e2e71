"""Check the types of registered objects, and create the summaries shown by `mleredux list`."""

from __future__ import annotations

import importlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mleredux._core.moved import renamed_methods

if TYPE_CHECKING:
    from mleredux._core.plugins.capabilities import Capabilities, Needs


_FIELDS: dict[str, tuple[str, ...]] = {
    "tasks": ("version", "kind", "category", "complexity", "sets", "tags", "direction"),
    "techniques": ("version", "variants", "categories"),
    "agents": ("version", "network", "tags"),
    "graders": ("version", "direction"),
    "formats": ("suffix", "together"),
    "executors": ("allocates",),
    "tools": ("version", "kind"),
}
"""The fields shown for each type in addition to id and title."""
_TYPES = {
    "tasks": ("mleredux.models", "Task", "a mleredux.plugin.task.Task"),
    "techniques": ("mleredux.models", "Technique", "a mleredux.plugin.technique.Technique"),
    "agents": ("mleredux.models", "Agent", "a mleredux.plugin.agent.Agent"),
    "schemes": ("mleredux._core.plugins.discovery", "Scheme", "a mleredux.plugin.Scheme"),
    "graders": ("mleredux.models", "Grader", "a mleredux.plugin.grader.Grader"),
    "sandboxes": (
        "mleredux._core.protocols",
        "Sandbox",
        "an object with the methods of mleredux.plugin.sandbox.Sandbox",
    ),
    "formats": ("mleredux.models.export", "Format", "a mleredux_rollout.Format"),
    "executors": (
        "mleredux._core.executors",
        "Executor",
        "an object with the methods of mleredux.plugin.executor.Executor",
    ),
    "tools": ("mleredux.models.agent", "Tool", "a mleredux.plugin.tool.Tool"),
    "commands": ("click", "Command", "a click.Command"),
}
"""The type of each kind of object: its module, its name, and its description in messages."""


def check_and_summarise(kind: str, item: Any) -> dict[str, Any]:
    """Return the JSON-serializable summary of a registered object, including its `id`.

    Raises:
        TypeError: The object has the wrong type.
    """
    if kind == "commands" and hasattr(item, "get_short_help_str"):
        place = {"place": item.place} if hasattr(item, "place") else {}
        return {"id": item.name, "title": item.get_short_help_str(limit=80), **place}
    module, name, described = _TYPES[kind]
    renamed_methods(kind, item)
    if not isinstance(item, getattr(importlib.import_module(module), name)):
        raise TypeError(f"a {type(item).__name__} was registered instead of {described} (or a Ref to one)")
    summary = {name: _plain(getattr(item, name)) for name in ("id", "title", *_FIELDS.get(kind, ()))}
    if kind == "graders" and item.requires:
        summary["requires"] = item.requires
    if kind == "agents":
        from mleredux._core.plugins.capabilities import needs_of

        summary["needs"] = _facts(needs_of(item))
    if kind == "tasks":
        summary |= {"metric": item.metric.id, "size_gb": item.resources.size_gb, "variants": sorted(item.variants)}
    return {**summary, **_facts(item.capabilities)} if kind == "sandboxes" else summary


def _facts(facts: Capabilities | Needs) -> dict[str, Any]:
    return {name: _plain(value) for name, value in asdict(facts).items()}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
