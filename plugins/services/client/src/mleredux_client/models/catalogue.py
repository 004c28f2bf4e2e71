"""The catalogue of a server: tasks, techniques, agents, graders, sandboxes."""

from __future__ import annotations

from typing import Any

from mleredux_client.models.base import Model


class Task(Model):
    """A task for agents. Lists contain the first block of fields; `client.task(id)` returns all of them."""

    id: str
    """The name that `run` takes."""
    kind: str = "competition"
    """`competition` or `technique`."""
    title: str = ""
    """A short description."""
    version: str | None = None
    """The version of the task."""
    category: str | None = None
    """The kind of data."""
    complexity: str | None = None
    """`low`, `medium` or `high`."""
    sets: list[str] = []
    """Named sets that the task belongs to."""
    tags: list[str] = []
    """Keywords for filtering lists."""
    metric: str | None = None
    """The name of the metric."""
    direction: str | None = None
    """`maximize` or `minimize`."""
    size_gb: float | None = None
    """Size of the data in gigabytes."""
    variants: list[str] = []
    """Names that can follow `+`."""
    plugin: str | None = None
    """The distribution that provides the task."""
    prepared: bool | None = None
    """Whether the data is ready on the server."""

    submission: dict[str, Any] | None = None
    """The file, its columns and their types."""
    thresholds: dict[str, float | None] | None = None
    """Scores that are required for medals, by medal."""
    description: str | None = None
    """The description that the agent gets, in Markdown."""


class Technique(Model):
    """A technique that is applied to tasks: `cv` derives the task `cv@digits` from the task `digits`."""

    id: str
    """The part of task names before `@`."""
    title: str = ""
    """A short description."""
    version: str | None = None
    """The version of the technique."""
    variants: list[str] = []
    """Names that can follow `+`; a placeholder in capitals if there are many: `planted-SEED`."""
    categories: list[str] = []
    """Categories of tasks that it applies to; empty: all."""
    plugin: str | None = None
    """The distribution that provides the technique."""


class Agent(Model):
    """An agent. Lists contain the first block of fields; `client.agent(id)` returns all of them."""

    id: str
    """The name that `run` takes."""
    title: str = ""
    """A short description."""
    version: str | None = None
    """The version of the agent."""
    network: str | None = None
    """The default network access."""
    sandboxes: list[str] = []
    """Sandboxes of the server that can run the agent."""
    tags: list[str] = []
    """Keywords for filtering lists."""
    plugin: str | None = None
    """The distribution that provides the agent."""

    command: list[str] | None = None
    """The command that is run in the sandbox."""
    build: dict[str, Any] | None = None
    """How the environment is built."""
    limits: dict[str, Any] | None = None
    """Default limits."""
    options: dict[str, Any] | None = None
    """Names and defaults of its options."""
    smoke: dict[str, Any] | None = None
    """The smoke run, if the agent has one."""
    reference: str | None = None
    """The exact reference of an agent that is not installed."""


class Grader(Model):
    """A metric."""

    id: str
    title: str = ""
    version: str | None = None
    direction: str | None = None
    plugin: str | None = None


class Sandbox(Model):
    """A sandbox in which agents run."""

    id: str
    title: str = ""
    isolated: bool | None = None
    """Whether it is a security boundary."""
    builds: list[str] = []
    """Sources from which it can build an agent's environment."""
    networks: list[str] = []
    gpus: bool | None = None
    writable_root: bool | None = None
    plugin: str | None = None
