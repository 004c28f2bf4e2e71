"""Tasks, techniques, agents, graders, sandboxes, as in the output of `mleredux list --json`."""

from __future__ import annotations

from pydantic import ConfigDict

from mleredux_http_api.base import Response


class Entry(Response):
    """Fields of a plugin's index; other versions may have more or fewer."""

    model_config = ConfigDict(extra="allow")

    id: str
    """The name that requests take."""
    title: str = ""
    """A short description."""
    plugin: str | None = None
    """The distribution that provides it."""


class TaskView(Entry):
    """A task in a list."""

    kind: str | None = None
    """`competition` or `technique`."""
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
    prepared: bool
    """Whether its files appear to be prepared on the server."""


class TechniqueView(Entry):
    """A technique in a list: `cv` creates the task `cv@digits` from `digits`."""

    version: str | None = None
    """The version of the technique."""
    variants: list[str] = []
    """Names that can follow `+`; a placeholder in capitals if there are many: `planted-SEED`."""
    categories: list[str] = []
    """Categories of tasks that it applies to; empty: all."""


class AgentView(Entry):
    """An agent in a list."""

    version: str | None = None
    """The version of the agent."""
    network: str | None = None
    """The default network access."""
    sandboxes: list[str] = []
    """Sandboxes installed on the server that can run it, best first."""
    tags: list[str] = []
    """Keywords for filtering lists."""


class GraderView(Entry):
    """A grader in a list."""

    version: str | None = None
    """The version of the grader."""
    direction: str | None = None
    """`maximize` or `minimize`."""


class SandboxView(Entry):
    """A sandbox in a list."""

    isolated: bool | None = None
    """Whether it is a security boundary."""
    builds: list[str] = []
    """Sources from which it can build an agent's environment."""
    networks: list[str] = []
    """Network access that it can provide."""
    gpus: bool | None = None
    """Whether it can provide GPUs."""
    writable_root: bool | None = None
    """Whether agents can write to the root file system."""
