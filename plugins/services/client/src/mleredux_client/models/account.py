"""Who may do what: users, tokens, projects."""

from __future__ import annotations

from datetime import datetime

from pydantic import SecretStr

from mleredux_client.models.base import Model


class User(Model):
    """A user, with tokens and projects."""

    id: str
    """The identity of the user."""
    name: str
    """The user's name."""
    admin: bool = False
    """Whether the user may administer the server."""
    service: bool = False
    """Whether it is a program."""
    created_at: datetime | None = None
    """When the account was created, in UTC."""
    disabled_at: datetime | None = None
    """When the account was disabled, in UTC; None: it is active."""


class TokenInfo(Model):
    """A token without its secret."""

    id: str
    """The identity of the token."""
    name: str | None = None
    """The name that its user gave it."""
    scopes: list[str] = []
    """The permitted actions: `read`, `run`, `grade`, `tokens`, `admin`."""
    user: str | None = None
    """The owner."""
    project: str | None = None
    """The only one it may use; None: all of the user's."""
    created_at: datetime | None = None
    """When it was created, in UTC."""
    last_used_at: datetime | None = None
    """When it was last used, in UTC."""
    expires_at: datetime | None = None
    """When it expires, in UTC; None: never."""


class Token(TokenInfo):
    """A new token: the only time its secret is said."""

    token: SecretStr
    """`token.get_secret_value()` gives it; it is not shown otherwise."""


class SecretInfo(Model):
    """A secret without its value."""

    name: str
    """The name of the environment variable."""
    project: str | None = None
    """Id of the project whose secret it is; None: your own."""
    created_at: datetime | None = None
    """When it was stored, in UTC."""
    updated_at: datetime | None = None
    """When its value last changed, in UTC."""


class WebhookInfo(Model):
    """An address that is told of a project's events, without its secret."""

    id: str
    project: str
    url: str
    events: list[str] = []
    created_at: datetime | None = None
    disabled_at: datetime | None = None
    """Since its receiver answered with status 410."""


class Webhook(WebhookInfo):
    """A new webhook: the only time its secret is said."""

    secret: SecretStr
    """`secret.get_secret_value()` is what receivers verify signatures with (Standard Webhooks)."""


class Delivery(Model):
    """A message of a webhook."""

    id: str
    event: str
    attempts: int = 0
    status: int | None = None
    """The receiver's last response."""
    message: str | None = None
    """Why it is not delivered."""
    created_at: datetime | None = None
    next_at: datetime | None = None
    delivered_at: datetime | None = None


class Quota(Model):
    """What a project may use; None where there is no limit."""

    concurrent_runs: int | None = None
    """Number of runs that execute at the same time."""
    queued_runs: int | None = None
    """Number of runs that wait."""
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
    """Share of the machine, beside that of other projects."""


class Usage(Model):
    """What a project uses now."""

    running_runs: int = 0
    """Number of runs that execute."""
    queued_runs: int = 0
    """Number of runs that wait."""
    cpus: float = 0
    """CPU cores of running runs."""
    memory_mb: float = 0
    """Memory in MiB of running runs."""
    gpus: int = 0
    """Number of GPUs of running runs."""
    disk_mb: float = 0
    """Disk space in MiB of all stored runs."""
    llm_tokens: int = 0
    """LLM tokens used so far."""


class Project(Model):
    """A place of runs with a quota, shared by its members."""

    id: str
    """The identity of the project."""
    name: str
    """The name that `--project` takes."""
    role: str | None = None
    """The caller's: `owner` or `member`."""
    quota: Quota = Quota()
    """The limits of the project."""
    usage: Usage = Usage()
    """The current usage."""
    created_at: datetime | None = None
    """When it was created, in UTC."""


class Me(Model):
    """Who the token belongs to, and what it may do."""

    user: User
    """The owner of the token."""
    token: TokenInfo
    """The token itself, without its secret."""
    projects: list[Project] = []
    """Projects that the user is a member of."""
    default_project: str | None = None
    """The project of requests that name none."""
