"""Models of builds of agents' environments."""

from __future__ import annotations

from typing import Any

from pydantic import Field

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
