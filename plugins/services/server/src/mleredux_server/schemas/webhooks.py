"""Models of webhooks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from mleredux_server.schemas.body import Body
from mleredux_server.schemas.runs import Name

EventName = Literal["run.ended", "experiment.ended"]


class WebhookRequest(Body):
    """A request for a webhook."""

    url: Annotated[str, StringConstraints(max_length=2000, pattern=r"^https?://[!-~]+$")]
    events: list[EventName] | None = Field(default=None, min_length=1, max_length=10)
    """None: all."""
    project: Name | None = None
    """Id or name; None: your own."""


class WebhookView(BaseModel):
    """A webhook, without its secret."""

    id: str
    project: str
    url: str
    events: list[str]
    created_at: datetime
    disabled_at: datetime | None
    """Since its receiver answered with status 410."""


class NewWebhook(WebhookView):
    """A newly created webhook."""

    secret: str
    """`whsec_…`, by which receivers verify signatures (Standard Webhooks); it is returned here and nowhere else."""


class DeliveryView(BaseModel):
    """A message of a webhook."""

    id: str
    """Also its header `webhook-id`: a repeat has the same."""
    event: str
    attempts: int
    status: int | None
    """The receiver's last response."""
    message: str | None
    """Why it is not delivered."""
    created_at: datetime
    next_at: datetime | None
    delivered_at: datetime | None
