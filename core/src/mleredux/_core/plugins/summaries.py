"""Check the types of registered objects, and create the summaries shown by `mleredux list`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

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


def check_and_summarise(kind: str, item: Any) -> dict[str, Any]:
    """Return the JSON-serializable summary of a registered object, including its `id`.

    Raises:
        TypeError: The object has the wrong type.
    """
    from mleredux._core.executors import Executor
    from mleredux._core.moved import renamed_methods
    from mleredux._core.plugins.capabilities import needs_of
    from mleredux._core.plugins.discovery import Scheme
    from mleredux._core.protocols import Sandbox
    from mleredux.models import Agent, Grader, Task, Technique
    from mleredux.models.agent import Tool
    from mleredux.models.export import Format

    if kind == "commands" and hasattr(item, "get_short_help_str"):
        place = {"place": item.place} if hasattr(item, "place") else {}
        return {"id": item.name, "title": item.get_short_help_str(limit=80), **place}
    expected: tuple[Any, str] = {
        "tasks": (Task, "a mleredux.plugin.task.Task"),
        "techniques": (Technique, "a mleredux.plugin.technique.Technique"),
        "agents": (Agent, "a mleredux.plugin.agent.Agent"),
        "schemes": (Scheme, "a mleredux.plugin.Scheme"),
        "graders": (Grader, "a mleredux.plugin.grader.Grader"),
        "sandboxes": (Sandbox, "an object with the methods of mleredux.plugin.sandbox.Sandbox"),
        "formats": (Format, "a mleredux_rollout.Format"),
        "executors": (Executor, "an object with the methods of mleredux.plugin.executor.Executor"),
        "tools": (Tool, "a mleredux.plugin.tool.Tool"),
        "commands": (type(None), "a click.Command"),
    }[kind]
    renamed_methods(kind, item)
    if not isinstance(item, expected[0]):
        raise TypeError(f"a {type(item).__name__} was registered instead of {expected[1]} (or a Ref to one)")
    summary = {name: _plain(getattr(item, name)) for name in ("id", "title", *_FIELDS.get(kind, ()))}
    if kind == "graders" and item.requires:
        summary["requires"] = item.requires
    if kind == "agents":
        summary["needs"] = _facts(needs_of(item))
    if kind == "tasks":
        summary |= {"metric": item.metric.id, "size_gb": item.resources.size_gb, "variants": sorted(item.variants)}
    return {**summary, **_facts(item.capabilities)} if kind == "sandboxes" else summary


def _facts(facts: Capabilities | Needs) -> dict[str, Any]:
    return {name: _plain(value) for name, value in asdict(facts).items()}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
