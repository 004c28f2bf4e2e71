"""Checking that a registered object is what its kind says, and what `mleredux list` shows of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mleredux._core.capabilities import Capabilities, Needs


def check_and_summarise(kind: str, item: Any) -> dict[str, Any]:
    """The summary of a registered object, JSON-able, with its `id`.

    Raises:
        TypeError: It is not what a plugin may register as this kind.
    """
    from mleredux._core.capabilities import needs_of
    from mleredux._core.models import Agent, Grader, Task, Technique
    from mleredux._core.protocols import Sandbox

    if kind == "tasks" and isinstance(item, Task):
        return {
            "id": item.id,
            "kind": item.kind,
            "title": item.title,
            "version": item.version,
            "category": item.category,
            "complexity": item.complexity,
            "sets": list(item.sets),
            "tags": list(item.tags),
            "metric": item.metric.id,
            "direction": item.direction,
            "size_gb": item.resources.size_gb,
            "variants": sorted(item.variants),
        }
    if kind == "techniques" and isinstance(item, Technique):
        return {
            "id": item.id,
            "title": item.title,
            "version": item.version,
            "variants": list(item.variants),
            "categories": list(item.categories),
        }
    if kind == "agents" and isinstance(item, Agent):
        return {
            "id": item.id,
            "title": item.title,
            "version": item.version,
            "network": item.network,
            "needs": _plain(needs_of(item)),
            "tags": list(item.tags),
        }
    if kind == "graders" and isinstance(item, Grader):
        return {"id": item.id, "title": item.title, "version": item.version, "direction": item.direction}
    if kind == "sandboxes" and isinstance(item, Sandbox):
        return {"id": item.id, "title": item.title, **_plain(item.capabilities)}
    if kind == "commands" and hasattr(item, "get_short_help_str"):
        place = {"place": item.place} if hasattr(item, "place") else {}
        return {"id": item.name, "title": item.get_short_help_str(limit=80), **place}
    expected = {
        "tasks": "a mleredux.plugin.task.Task",
        "techniques": "a mleredux.plugin.technique.Technique",
        "agents": "a mleredux.plugin.agent.Agent",
        "graders": "a mleredux.plugin.grader.Grader",
        "sandboxes": "an object with the methods of mleredux.plugin.sandbox.Sandbox",
        "commands": "a click.Command",
    }[kind]
    raise TypeError(f"a {type(item).__name__} was given where {expected} (or a Ref to one) belongs")


def _plain(facts: Capabilities | Needs) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(facts).items()}
