"""Models of tasks, techniques, agents, graders, sandboxes: the output of `mleredux list --json` and `show --json`."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class _Entry(BaseModel):
    """Fields of a plugin's index; other versions may have more or fewer."""

    model_config = ConfigDict(extra="allow")

    id: str
    title: str = ""
    plugin: str | None = None


class TaskView(_Entry):
    """A task in a list."""

    kind: str | None = None
    version: str | None = None
    category: str | None = None
    complexity: str | None = None
    sets: list[str] = []
    tags: list[str] = []
    metric: str | None = None
    direction: str | None = None
    size_gb: float | None = None
    variants: list[str] = []
    prepared: bool
    """Whether its files appear to be prepared on the server."""


class TaskDetail(TaskView):
    """A task in full."""

    submission: dict[str, Any]
    thresholds: dict[str, float | None] | None
    description: str


class TechniqueView(_Entry):
    """A technique in a list: `cv` creates the task `cv@digits` from `digits`."""

    version: str | None = None
    variants: list[str] = []
    """Names that can follow `+`; a placeholder in capitals if there are many."""
    categories: list[str] = []
    """Categories of tasks that it applies to; empty: all."""


class AgentView(_Entry):
    """An agent in a list."""

    version: str | None = None
    network: str | None = None
    sandboxes: list[str] = []
    """Sandboxes installed on the server that can run it, best first."""
    tags: list[str] = []


class AgentDetail(AgentView):
    """An agent in full, without the values of its variables and without the server's paths."""

    command: list[str]
    build: dict[str, Any]
    limits: dict[str, Any]
    options: dict[str, Any]
    smoke: dict[str, Any] | None
    reference: str | None


class GraderView(_Entry):
    """A grader in a list."""

    version: str | None = None
    direction: str | None = None


class SandboxView(_Entry):
    """A sandbox in a list."""

    isolated: bool | None = None
    """Whether it is a security boundary."""
    builds: list[str] = []
    """Sources from which it can build an agent's environment."""
    networks: list[str] = []
    gpus: bool | None = None
    writable_root: bool | None = None
