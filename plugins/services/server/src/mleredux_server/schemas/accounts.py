"""Models of users, tokens, projects and quotas."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from mleredux_http_api import TokenView, Usage, UserView
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from mleredux_server.schemas.body import Body
from mleredux_server.schemas.runs import Label, Name
from mleredux_server.schemas.units import Seconds


def _no_id(name: str) -> str:
    if name.startswith(("usr_", "prj_")):
        raise ValueError("must not look like an id")
    return name


AccountName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$"), AfterValidator(_no_id)]
"""A name of a user or a project."""
Scope = Literal["read", "run", "grade", "tokens", "admin"]
Role = Literal["member", "owner"]
ISOLATED = "isolated"
"""Stands for every isolated sandbox in a quota."""
_LARGEST = 2**53
_DECADE = 10 * 366 * 86400


class Quota(BaseModel):
    """Limits of a project; None: no limit."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    concurrent_runs: int | None = Field(default=None, ge=0, le=_LARGEST)
    queued_runs: int | None = Field(default=10_000, ge=0, le=_LARGEST)
    cpus: float | None = Field(default=None, ge=0, le=_LARGEST)
    memory_mb: int | None = Field(default=None, ge=0, le=_LARGEST)
    gpus: int | None = Field(default=None, ge=0, le=_LARGEST)
    disk_mb: int | None = Field(default=None, ge=0, le=_LARGEST)
    """Disk used by its runs, and reserved for unfinished ones."""
    llm_tokens: int | None = Field(default=None, ge=0, le=_LARGEST)
    """Total over all runs; to grant more, raise it."""
    max_time_limit: Seconds | None = Field(default=None, gt=0, le=_LARGEST)
    """Maximum time limit of a run, in seconds or as text such as `2h`."""
    sandboxes: list[Name] | None = Field(default=[ISOLATED], max_length=20)
    """Ids of sandboxes in which its agents may run, or `isolated` for all that are a security boundary; None: any
    sandbox. Only isolated sandboxes are a boundary between users."""
    networks: list[Literal["none", "gateway", "open"]] = Field(default=["none", "gateway"], max_length=3)
    weight: float = Field(default=1.0, gt=0, le=1000)
    """Weight in the fair share of the machine."""


class ProjectView(BaseModel):
    """A project."""

    id: str
    name: str
    role: str | None
    """The caller's role."""
    quota: Quota
    usage: Usage
    created_at: datetime


class NewToken(TokenView):
    """A newly created token."""

    token: str
    """The secret; it is returned here and nowhere else."""


class AuditView(BaseModel):
    """A change in the audit log."""

    id: int
    time: datetime
    user: str | None
    """Name of the user who made it; None: the administrator, on the command line."""
    token: str | None
    """Id of the token that was used."""
    action: str
    target: str | None


class TokenRequest(Body):
    """A request for a token."""

    name: Label
    scopes: list[Scope] = Field(min_length=1, max_length=5)
    project: Name | None = None
    """Id or name of the only project that it will be valid for."""
    expires_in: Seconds | None = Field(default=None, gt=0, le=_DECADE)
    """Lifetime in seconds; None: it does not expire, or expires with the requesting token."""
    user: Name | None = None
    """Id or name of its owner; only admins may create tokens for others."""


class UserRequest(Body):
    """A request for a user with their own project."""

    name: AccountName
    admin: bool = False
    service: bool = False
    """Whether it is a service account: a program that works in a project."""
    project: Name | None = None
    """Id or name of the project of a service account, which has no personal project."""


class ProjectRequest(Body):
    """A request for a project."""

    name: AccountName
    quota: Quota | None = None


class ProjectChange(Body):
    """Changes to a project; omitted fields stay unchanged."""

    name: AccountName | None = None
    quota: Quota | None = None
    """Only the given fields change; null removes a limit."""


class Membership(Body):
    """A user's new role in a project."""

    role: Role = "member"


class Me(BaseModel):
    """The authenticated user."""

    user: UserView
    token: TokenView
    projects: list[ProjectView]
    default_project: str | None
    """Id of the project that runs are created in by default."""
