"""Models of webhooks."""

from __future__ import annotations

from typing import Annotated, Literal

from mleredux_http_api import WebhookView
from pydantic import Field, StringConstraints

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


class NewWebhook(WebhookView):
    """A newly created webhook."""

    secret: str
    """`whsec_…`, with which receivers verify signatures (Standard Webhooks); it is returned here and nowhere else."""
