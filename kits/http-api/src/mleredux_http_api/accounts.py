"""Users, tokens, secrets, webhooks, and the usage of projects."""

from __future__ import annotations

from datetime import datetime

from mleredux_http_api.base import Response


class UserView(Response):
    """A user with tokens."""

    id: str
    """The id of the user."""
    name: str
    """The user's name."""
    admin: bool
    """Whether the user may administer the server."""
    service: bool = False
    """Whether it is a service account: a program, which has tokens but can't sign in to the pages."""
    created_at: datetime | None = None
    """When the account was created, in UTC."""
    disabled_at: datetime | None = None
    """When the user was disabled, in UTC; their runs remain. None: it is active."""


class TokenView(Response):
    """A token without its secret."""

    id: str
    """The id of the token."""
    name: str
    """The name that its user gave it."""
    user: str
    """Name of its owner."""
    scopes: list[str]
    """The permitted actions: `read`, `run`, `grade`, `tokens`, `admin`."""
    project: str | None
    """Id of the only project it is valid for; None: all of the user's projects."""
    created_at: datetime
    """When it was created, in UTC."""
    expires_at: datetime | None
    """When it expires, in UTC; None: never."""
    last_used_at: datetime | None
    """When it was last used, in UTC."""


class SecretView(Response):
    """A secret without its value, which is never returned."""

    name: str
    """The name of the environment variable."""
    project: str | None
    """Id of the project that owns the secret; None: you own it."""
    created_at: datetime
    """When it was stored, in UTC."""
    updated_at: datetime
    """When its value last changed, in UTC."""


class WebhookView(Response):
    """A webhook, without its secret."""

    id: str
    """The id of the webhook."""
    project: str
    """Id of the project."""
    url: str
    """The URL that is notified."""
    events: list[str]
    """The events that are sent to it."""
    created_at: datetime
    """When it was created, in UTC."""
    disabled_at: datetime | None
    """When it was disabled, because its receiver responded with status 410."""


class DeliveryView(Response):
    """A message of a webhook."""

    id: str
    """Id, also sent in the header `webhook-id`; repeated deliveries have the same id."""
    event: str
    """The name of the event."""
    attempts: int
    """Number of attempts so far."""
    status: int | None
    """The receiver's last response."""
    message: str | None
    """Why it has not been delivered."""
    created_at: datetime
    """When the event occurred, in UTC."""
    next_at: datetime | None
    """When the next attempt is due, in UTC."""
    delivered_at: datetime | None
    """When it was delivered, in UTC."""


class Usage(Response):
    """Current usage of a project."""

    running_runs: int = 0
    """Number of active runs."""
    queued_runs: int = 0
    """Number of runs that are queued."""
    cpus: float = 0.0
    """CPU cores of active runs."""
    memory_mb: int = 0
    """Memory of active runs, in MiB."""
    gpus: int = 0
    """Number of GPUs of active runs."""
    disk_mb: int = 0
    """Disk space of all stored runs, in MiB."""
    llm_tokens: int = 0
    """LLM tokens used so far."""
