"""What a service offers: tasks, techniques, agents, graders, sandboxes."""

from __future__ import annotations

from typing import Any

from mleredux_client.models.base import Model


class Task(Model):
    """Something to solve. Lists have the first block; `client.task(id)` has everything."""

    id: str
    kind: str = "competition"
    title: str = ""
    version: str | None = None
    category: str | None = None
    complexity: str | None = None
    sets: list[str] = []
    tags: list[str] = []
    metric: str | None = None
    direction: str | None = None
    """`maximize` or `minimize`."""
    size_gb: float | None = None
    variants: list[str] = []
    plugin: str | None = None
    prepared: bool | None = None

    submission: dict[str, Any] | None = None
    """File, columns and their types."""
    thresholds: dict[str, float | None] | None = None
    description: str | None = None
    """Markdown, as the agent gets it."""


class Technique(Model):
    """A question that can be asked of tasks: `cv` makes the task `cv@digits` of the task `digits`."""

    id: str
    title: str = ""
    version: str | None = None
    variants: list[str] = []
    """A placeholder in capitals where there are many: `planted-SEED`."""
    categories: list[str] = []
    """Of tasks that it makes sense of; empty: all."""
    plugin: str | None = None


class Agent(Model):
    """Something that solves tasks. Lists have the first block; `client.agent(id)` has everything."""

    id: str
    title: str = ""
    version: str | None = None
    network: str | None = None
    sandboxes: list[str] = []
    tags: list[str] = []
    plugin: str | None = None

    command: list[str] | None = None
    build: dict[str, Any] | None = None
    limits: dict[str, Any] | None = None
    options: dict[str, Any] | None = None
    """Names and defaults."""
    smoke: dict[str, Any] | None = None
    reference: str | None = None


class Grader(Model):
    """A metric."""

    id: str
    title: str = ""
    version: str | None = None
    direction: str | None = None
    plugin: str | None = None


class Sandbox(Model):
    """Where agents run."""

    id: str
    title: str = ""
    isolated: bool | None = None
    """Whether it is a security boundary."""
    builds: list[str] = []
    """What it can make an agent's environment from."""
    networks: list[str] = []
    gpus: bool | None = None
    writable_root: bool | None = None
    plugin: str | None = None
