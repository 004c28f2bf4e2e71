"""Check the types of registered objects, and create the summaries shown by `mleredux list`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mleredux._core.plugins.capabilities import Capabilities, Needs


_FIELDS: dict[str, tuple[str, ...]] = {
    "tasks": ("kind", "category", "complexity", "sets", "tags", "direction"),
    "techniques": ("variants", "categories"),
    "agents": ("network", "tags"),
    "graders": ("direction",),
}
"""The fields shown for each type in addition to id, title and version."""


def check_and_summarise(kind: str, item: Any) -> dict[str, Any]:
    """Return the JSON-serializable summary of a registered object, including its `id`.

    Raises:
        TypeError: The object has the wrong type.
    """
    from mleredux._core.moved import renamed_methods
    from mleredux._core.plugins.capabilities import needs_of
    from mleredux._core.protocols import Sandbox
    from mleredux.models import Agent, Grader, Task, Technique

    renamed_methods(kind, item)
    types = {"tasks": Task, "techniques": Technique, "agents": Agent, "graders": Grader}
    if kind in types and isinstance(item, types[kind]):
        summary = {name: _plain(getattr(item, name)) for name in ("id", "title", "version", *_FIELDS[kind])}
        if kind == "graders" and item.requires:
            summary["requires"] = item.requires
        if kind == "agents":
            summary["needs"] = _facts(needs_of(item))
        if kind == "tasks":
            summary |= {"metric": item.metric.id, "size_gb": item.resources.size_gb, "variants": sorted(item.variants)}
        return summary
    if kind == "sandboxes" and isinstance(item, Sandbox):
        return {"id": item.id, "title": item.title, **_facts(item.capabilities)}
    from mleredux._core.executors import Executor
    from mleredux._core.plugins.discovery import Scheme
    from mleredux.models.export import Format
    from mleredux.models.tool import Tool

    if kind == "formats" and isinstance(item, Format):
        return {name: getattr(item, name) for name in ("id", "title", "suffix", "together")}
    if kind == "schemes" and isinstance(item, Scheme):
        return {"id": item.id, "title": item.title}
    if kind == "executors" and isinstance(item, Executor):
        return {"id": item.id, "title": item.title, "allocates": item.allocates}
    if kind == "tools" and isinstance(item, Tool):
        return {"id": item.id, "title": item.title, "version": item.version, "kind": item.kind}
    if kind == "commands" and hasattr(item, "get_short_help_str"):
        place = {"place": item.place} if hasattr(item, "place") else {}
        return {"id": item.name, "title": item.get_short_help_str(limit=80), **place}
    expected = {
        "tasks": "a mleredux.plugin.task.Task",
        "techniques": "a mleredux.plugin.technique.Technique",
        "agents": "a mleredux.plugin.agent.Agent",
        "graders": "a mleredux.plugin.grader.Grader",
        "sandboxes": "an object with the methods of mleredux.plugin.sandbox.Sandbox",
        "formats": "a mleredux_rollout.Format",
        "schemes": "a mleredux.plugin.Scheme",
        "executors": "an object with the methods of mleredux.plugin.executor.Executor",
        "tools": "a mleredux.plugin.tool.Tool",
        "commands": "a click.Command",
    }[kind]
    raise TypeError(f"a {type(item).__name__} was registered instead of {expected} (or a Ref to one)")


def _facts(facts: Capabilities | Needs) -> dict[str, Any]:
    return {name: _plain(value) for name, value in asdict(facts).items()}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
