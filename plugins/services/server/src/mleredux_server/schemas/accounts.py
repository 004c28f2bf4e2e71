"""Users, tokens, projects and quotas over the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from mleredux_server.schemas.body import Body
from mleredux_server.schemas.runs import Label, Name


def _no_id(name: str) -> str:
    if name.startswith(("usr_", "prj_")):
        raise ValueError("must not look like an id")
    return name


AccountName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$"), AfterValidator(_no_id)]
"""Of users and projects."""
Scope = Literal["read", "run", "grade", "tokens", "admin"]
Role = Literal["member", "owner"]
ISOLATED = "isolated"
"""Stands for every isolated sandbox in a quota."""
_LARGEST = 2**53
_DECADE = 10 * 366 * 86400


class Quota(BaseModel):
    """What a project may use; None: no limit."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    concurrent_runs: int | None = Field(default=None, ge=0, le=_LARGEST)
    queued_runs: int | None = Field(default=10_000, ge=0, le=_LARGEST)
    cpus: float | None = Field(default=None, ge=0, le=_LARGEST)
    memory_mb: int | None = Field(default=None, ge=0, le=_LARGEST)
    gpus: int | None = Field(default=None, ge=0, le=_LARGEST)
    disk_mb: int | None = Field(default=None, ge=0, le=_LARGEST)
    """Of what its runs left, and may still write."""
    llm_tokens: int | None = Field(default=None, ge=0, le=_LARGEST)
    """In all; more is given by raising it."""
    max_time_limit: float | None = Field(default=None, gt=0, le=_LARGEST)
    """Seconds that one run may ask for."""
    sandboxes: list[Name] | None = Field(default=[ISOLATED], max_length=20)
    """Ids of sandboxes where its agents may run, `isolated` for all that are a security boundary; None: anywhere. Only
    isolated sandboxes are a boundary between users."""
    networks: list[Literal["none", "gateway", "open"]] = Field(default=["none", "gateway"], max_length=3)
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


class NewToken(TokenView):
    """A token that was just made."""

    token: str
    """The secret; it is said here and nowhere else."""


class TokenRequest(Body):
    """A token that is to be made."""

    name: Label
    scopes: list[Scope] = Field(min_length=1, max_length=5)
    project: Name | None = None
    """Id or name of the only project it is to be good for."""
    expires_in: float | None = Field(default=None, gt=0, le=_DECADE)
    """Seconds; None: never, or with the token that asks."""
    user: Name | None = None
    """Id or name of whose it is to be; only admins make tokens of others."""


class UserRequest(Body):
    """A user who is to be made, with a project of their own."""

    name: AccountName
    admin: bool = False


class ProjectRequest(Body):
    """A project that is to be made."""

    name: AccountName
    quota: Quota | None = None


class ProjectChange(Body):
    """What is to be another way; what is left out stays."""

    name: AccountName | None = None
    quota: Quota | None = None
    """Only fields that are named change; null lifts a limit."""


class Membership(Body):
    """What a user is to be in a project."""

    role: Role = "member"


class Me(BaseModel):
    """Who asks."""

    user: UserView
    token: TokenView
    projects: list[ProjectView]
    default_project: str | None
    """Id of the project that runs are made in where none is named."""
