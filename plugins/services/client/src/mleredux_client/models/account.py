"""Who may do what: users, tokens, projects."""

from __future__ import annotations

from datetime import datetime

from pydantic import SecretStr

from mleredux_client.models.base import Model


class User(Model):
    """Somebody with tokens and projects."""

    id: str
    name: str
    admin: bool = False
    service: bool = False
    """Whether it is a program."""
    created_at: datetime | None = None
    disabled_at: datetime | None = None


class TokenInfo(Model):
    """A token without its secret."""

    id: str
    name: str | None = None
    scopes: list[str] = []
    user: str | None = None
    project: str | None = None
    """The only one it may use; None: all of the user's."""
    created_at: datetime | None = None
    last_used_at: datetime | None = None
    expires_at: datetime | None = None


class Token(TokenInfo):
    """A new token: the only time its secret is said."""

    token: SecretStr
    """`token.get_secret_value()` gives it; it is not shown otherwise."""


class SecretInfo(Model):
    """A secret without its value."""

    name: str
    project: str | None = None
    """Id of the project whose secret it is; None: your own."""
    created_at: datetime | None = None
    updated_at: datetime | None = None


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
    queued_runs: int | None = None
    cpus: float | None = None
    memory_mb: int | None = None
    gpus: int | None = None
    disk_mb: int | None = None
    llm_tokens: int | None = None
    max_time_limit: float | None = None
    """Seconds."""
    sandboxes: list[str] | None = None
    networks: list[str] | None = None
    weight: float | None = None
    """Share of the machine, beside that of other projects."""


class Usage(Model):
    """What a project uses now."""

    running_runs: int = 0
    queued_runs: int = 0
    cpus: float = 0
    memory_mb: float = 0
    gpus: int = 0
    disk_mb: float = 0
    llm_tokens: int = 0


class Project(Model):
    """A place of runs with a quota, shared by its members."""

    id: str
    name: str
    role: str | None = None
    """The caller's: `owner` or `member`."""
    quota: Quota = Quota()
    usage: Usage = Usage()
    created_at: datetime | None = None


class Me(Model):
    """Who the token belongs to, and what it may do."""

    user: User
    token: TokenInfo
    projects: list[Project] = []
    default_project: str | None = None
