"""Tasks, techniques, agents, graders, sandboxes over the wire: what `mleredux list --json` and `show --json` tell."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class _Told(BaseModel):
    """What a plugin's index tells; one of another version may tell more, or less."""

    model_config = ConfigDict(extra="allow")

    id: str
    title: str = ""


class TaskView(_Told):
    """A task of a list."""

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
    plugin: str | None = None
    prepared: bool
    """Whether its files seem to lie ready on the server."""


class TaskDetail(TaskView):
    """A task in full."""

    submission: dict[str, Any]
    thresholds: dict[str, float | None] | None
    description: str


class TechniqueView(_Told):
    """A question that can be asked of tasks, of a list: `cv` makes the task `cv@digits` of `digits`."""

    version: str | None = None
    variants: list[str] = []
    """A placeholder in capitals where there are many."""
    categories: list[str] = []
    """Of tasks that it makes sense of; empty: all."""
    plugin: str | None = None


class AgentView(_Told):
    """An agent of a list."""

    version: str | None = None
    network: str | None = None
    sandboxes: list[str] = []
    """Of those installed on the server, the ones that can run it, best first."""
    tags: list[str] = []
    plugin: str | None = None


class AgentDetail(AgentView):
    """An agent in full, without the values of its variables and paths of the server."""

    command: list[str]
    build: dict[str, Any]
    limits: dict[str, Any]
    options: dict[str, Any]
    smoke: dict[str, Any] | None
    reference: str | None


class GraderView(_Told):
    """A grader of a list."""

    version: str | None = None
    direction: str | None = None
    plugin: str | None = None


class SandboxView(_Told):
    """A sandbox of a list."""

    isolated: bool | None = None
    """Whether it is a security boundary."""
    builds: list[str] = []
    """What it can make an agent's environment from."""
    networks: list[str] = []
    gpus: bool | None = None
    writable_root: bool | None = None
    plugin: str | None = None
