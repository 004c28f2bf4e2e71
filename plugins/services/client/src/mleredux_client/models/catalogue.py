"""The catalogue of a server: tasks, techniques, agents, graders, sandboxes."""

from __future__ import annotations

from typing import Any

import mleredux_http_api as api

from mleredux_client.models.base import Model


class Task(Model, api.TaskView):
    """A task for agents. Lists contain the first block of fields; `client.task(id)` returns all of them."""

    submission: dict[str, Any] | None = None
    """The file, its columns and their types."""
    thresholds: dict[str, float | None] | None = None
    """Scores that are required for medals, by medal."""
    description: str | None = None
    """The description that the agent gets, in Markdown."""


class Technique(Model, api.TechniqueView):
    """A technique that is applied to tasks: `cv` derives the task `cv@digits` from the task `digits`."""


class Agent(Model, api.AgentView):
    """An agent. Lists contain the first block of fields; `client.agent(id)` returns all of them."""

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


class Grader(Model, api.GraderView):
    """A metric."""


class Sandbox(Model, api.SandboxView):
    """A sandbox in which agents run."""
