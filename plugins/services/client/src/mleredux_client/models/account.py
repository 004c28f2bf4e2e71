"""Accounts and permissions: users, tokens, projects."""

from __future__ import annotations

from datetime import datetime

import mleredux_http_api as api
from pydantic import SecretStr

from mleredux_client.models.base import Model


class User(Model, api.UserView):
    """A user, with tokens and projects."""


class TokenInfo(Model, api.TokenView):
    """A token without its secret."""


class Token(TokenInfo):
    """A new token with its secret, which is not returned again."""

    token: SecretStr
    """The secret, returned by `token.get_secret_value()`; it is not displayed otherwise."""


class SecretInfo(Model, api.SecretView):
    """A secret without its value."""


class WebhookInfo(Model, api.WebhookView):
    """A URL that is notified of a project's events, without its secret."""


class Webhook(WebhookInfo):
    """A new webhook with its secret, which is not returned again."""

    secret: SecretStr
    """`secret.get_secret_value()` returns the key with which receivers verify signatures (Standard Webhooks)."""


class Delivery(Model, api.DeliveryView):
    """A message of a webhook."""

    status: int | None = None
    """The receiver's last response."""


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


class Usage(Model, api.Usage):
    """Current usage of a project."""


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
