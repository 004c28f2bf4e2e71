"""Models of builds of agents' environments."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from mleredux_server.schemas.body import Body
from mleredux_server.schemas.runs import Name, SecretName


class BuildAsked(Body):
    """A request for a build."""

    agent: Name
    """`repo:https://host/team/agent.git@REF`, or an installed agent."""
    options: dict[str, Any] = Field(default={}, max_length=64)
    sandbox: Name | None = None
    """Id of the sandbox; None: the best isolated one that meets the agent's needs."""
    secrets: list[SecretName] = Field(default=[], max_length=32)
    """Names of your own or the project's secrets; `GIT_TOKEN` is used to fetch a private repository."""
    project: Name | None = None
    """Id or name of the project; None means the caller's own."""


class BuildView(BaseModel):
    """An agent's environment, built ahead of its runs."""

    id: str
    agent: str
    """The reference as requested; once the build is ready, the pinned reference for use in runs."""
    sandbox: str
    status: Literal["queued", "building", "ready", "failed"]
    message: str | None
    image: str | None
    """Content digest of the environment."""
    cached: bool | None
    """Whether the environment already existed."""
    project: str
    user: str
    created_at: datetime
    ended_at: datetime | None
