"""Users, tokens, projects and quotas over the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Quota(BaseModel):
    """What a project may use; None: no limit."""

    model_config = ConfigDict(extra="forbid")

    concurrent_runs: int | None = Field(default=None, ge=0)
    queued_runs: int | None = Field(default=10_000, ge=0)
    cpus: float | None = Field(default=None, ge=0)
    memory_mb: int | None = Field(default=None, ge=0)
    gpus: int | None = Field(default=None, ge=0)
    disk_mb: int | None = Field(default=None, ge=0)
    """Of what its runs left, and may still write."""
    llm_tokens: int | None = Field(default=None, ge=0)
    """In all; more is given by raising it."""
    max_time_limit: float | None = Field(default=None, gt=0)
    """Seconds that one run may ask for."""
    sandboxes: list[str] | None = ["docker"]
    """Where its agents may run; None: anywhere. The process sandbox is no boundary between users."""
    networks: list[Literal["none", "gateway", "open"]] = ["none", "gateway"]
    weight: float = Field(default=1.0, gt=0, le=1000)
    """Of its users' share of the machine."""


class Usage(BaseModel):
    """What a project uses now."""

    running_runs: int = 0
    queued_runs: int = 0
    cpus: float = 0.0
    memory_mb: int = 0
    gpus: int = 0
    disk_mb: int = 0
    llm_tokens: int = 0


class ProjectView(BaseModel):
    """A project."""

    id: str
    name: str
    role: str | None
    """Of the caller."""
    quota: Quota
    usage: Usage
    created_at: datetime


class UserView(BaseModel):
    """Somebody with tokens."""

    id: str
    name: str
    admin: bool
    created_at: datetime | None = None
    disabled_at: datetime | None = None
    """Since when they may do nothing; their runs stay."""


class TokenView(BaseModel):
    """A token without its secret."""

    id: str
    name: str
    user: str
    """Name of whose it is."""
    scopes: list[str]
    project: str | None
    """Id of the only project it is good for."""
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


class Me(BaseModel):
    """Who asks."""

    user: UserView
    token: TokenView
    projects: list[ProjectView]
    default_project: str | None
    """Id of the project that runs are made in where none is named."""
