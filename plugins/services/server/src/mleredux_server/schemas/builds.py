"""Builds of agents' environments over the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from mleredux_server.schemas.body import Body
from mleredux_server.schemas.runs import Name


class BuildAsked(Body):
    """What is to be built."""

    agent: Name
    """`repo:https://host/team/agent.git@REF`, or an agent that is installed."""
    options: dict[str, Any] = Field(default={}, max_length=64)
    sandbox: Name | None = None
    """The best isolated one that meets the agent's needs where None."""
    project: Name | None = None
    """Id or name; the caller's own where None."""


class BuildView(BaseModel):
    """An agent's environment that is made ahead of its runs."""

    id: str
    agent: str
    """As it was asked for; pinned, to be used in runs, once it is ready."""
    sandbox: str
    status: Literal["queued", "building", "ready", "failed"]
    message: str | None
    image: str | None
    """What the environment is, by content."""
    cached: bool | None
    """Whether nothing had to be built."""
    project: str
    user: str
    created_at: datetime
    ended_at: datetime | None
