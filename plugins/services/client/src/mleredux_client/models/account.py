"""Accounts and permissions: users, tokens, projects."""

from __future__ import annotations

from datetime import datetime

from pydantic import SecretStr

from mleredux_client.models.base import Model


class User(Model):
    """A user, with tokens and projects."""

    id: str
    """The id of the user."""
    name: str
    """The user's name."""
    admin: bool = False
    """Whether the user may administer the server."""
    service: bool = False
    """Whether it is a service account, used by a program."""
    created_at: datetime | None = None
    """When the account was created, in UTC."""
    disabled_at: datetime | None = None
    """When the account was disabled, in UTC; None: it is active."""


class TokenInfo(Model):
    """A token without its secret."""

    id: str
    """The id of the token."""
    name: str | None = None
    """The name that its user gave it."""
    scopes: list[str] = []
    """The permitted actions: `read`, `run`, `grade`, `tokens`, `admin`."""
    user: str | None = None
    """The owner."""
    project: str | None = None
    """The only project that it may use; None: all of the user's projects."""
    created_at: datetime | None = None
    """When it was created, in UTC."""
    last_used_at: datetime | None = None
    """When it was last used, in UTC."""
    expires_at: datetime | None = None
    """When it expires, in UTC; None: never."""


class Token(TokenInfo):
    """A new token with its secret, which is not returned again."""

    token: SecretStr
    """The secret, returned by `token.get_secret_value()`; it is not displayed otherwise."""


class SecretInfo(Model):
    """A secret without its value."""

    name: str
    """The name of the environment variable."""
    project: str | None = None
    """Id of the project that owns the secret; None: you own it."""
    created_at: datetime | None = None
    """When it was stored, in UTC."""
    updated_at: datetime | None = None
    """When its value last changed, in UTC."""


class WebhookInfo(Model):
    """A URL that is notified of a project's events, without its secret."""

    id: str
    project: str
    url: str
    events: list[str] = []
    created_at: datetime | None = None
    disabled_at: datetime | None = None
    """When it was disabled, because its receiver responded with status 410."""


class Webhook(WebhookInfo):
    """A new webhook with its secret, which is not returned again."""

    secret: SecretStr
    """`secret.get_secret_value()` returns the key with which receivers verify signatures (Standard Webhooks)."""


class Delivery(Model):
    """A message of a webhook."""

    id: str
    event: str
    attempts: int = 0
    status: int | None = None
    """The receiver's last response."""
    message: str | None = None
    """Why it has not been delivered."""
    created_at: datetime | None = None
    next_at: datetime | None = None
    delivered_at: datetime | None = None


class Quota(Model):
    """Limits of a project; None: no limit."""

    concurrent_runs: int | None = None
    """Number of runs that execute at the same time."""
    queued_runs: int | None = None
    """Number of runs that are queued."""
    cpus: float | None = None
    """CPU cores."""
    memory_mb: int | None = None
    """Memory in MiB."""
    gpus: int | None = None
    """Number of GPUs."""
    disk_mb: int | None = None
    """Disk space in MiB."""
    llm_tokens: int | None = None
    """LLM tokens."""
    max_time_limit: float | None = None
    """Seconds."""
    sandboxes: list[str] | None = None
    """Permitted sandboxes."""
    networks: list[str] | None = None
    """Permitted network access."""
    weight: float | None = None
    """Weight of the project in the fair share of the machine."""


class Usage(Model):
    """Current usage of a project."""

    running_runs: int = 0
    """Number of active runs."""
    queued_runs: int = 0
    """Number of runs that are queued."""
    cpus: float = 0
    """CPU cores of active runs."""
    memory_mb: float = 0
    """Memory of active runs, in MiB."""
    gpus: int = 0
    """Number of GPUs of active runs."""
    disk_mb: float = 0
    """Disk space of all stored runs, in MiB."""
    llm_tokens: int = 0
    """LLM tokens used so far."""


class Project(Model):
    """A project, which owns runs that its members share, and has a quota."""

    id: str
    """The id of the project."""
    name: str
    """The name that `--project` takes."""
    role: str | None = None
    """The caller's role: `owner` or `member`."""
    quota: Quota = Quota()
    """The limits of the project."""
    usage: Usage = Usage()
    """The current usage."""
    created_at: datetime | None = None
    """When it was created, in UTC."""


class Me(Model):
    """The owner of the token, and its permissions."""

    user: User
    """The owner of the token."""
    token: TokenInfo
    """The token itself, without its secret."""
    projects: list[Project] = []
    """Projects that the user is a member of."""
    default_project: str | None = None
    """Id of the project for requests that name none."""
