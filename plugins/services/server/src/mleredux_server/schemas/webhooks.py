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
    """Events to send; None: all."""
    project: Name | None = None
    """Id or name of the project; None: your own."""


class WebhookView(BaseModel):
    """A webhook, without its secret."""

    id: str
    project: str
    url: str
    events: list[str]
    created_at: datetime
    disabled_at: datetime | None
    """When it was disabled, because its receiver responded with status 410."""


class NewWebhook(WebhookView):
    """A newly created webhook."""

    secret: str
    """`whsec_…`, with which receivers verify signatures (Standard Webhooks); it is returned here and nowhere else."""


class DeliveryView(BaseModel):
    """A message of a webhook."""

    id: str
    """Id, also sent in the header `webhook-id`; repeated deliveries have the same id."""
    event: str
    attempts: int
    status: int | None
    """The receiver's last response."""
    message: str | None
    """Why it has not been delivered."""
    created_at: datetime
    next_at: datetime | None
    delivered_at: datetime | None
