"""Models of tasks and agents in full: the output of `mleredux show --json`."""

from __future__ import annotations

from typing import Any

from mleredux_http_api import AgentView, TaskView


class TaskDetail(TaskView):
    """A task in full."""

    submission: dict[str, Any]
    thresholds: dict[str, float | None] | None
    description: str


class AgentDetail(AgentView):
    """An agent in full, without the values of its variables and without the server's paths."""

    command: list[str]
    build: dict[str, Any]
    limits: dict[str, Any]
    options: dict[str, Any]
    smoke: dict[str, Any] | None
    reference: str | None
