"""`/v1/webhooks`: URLs that are notified of events in a project."""

from __future__ import annotations

import base64
import secrets
from typing import Annotated

from fastapi import APIRouter, Query
from mleredux_http_api import DeliveryView, WebhookView
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from mleredux_server.accounts.accounts import check_owner, note
from mleredux_server.accounts.identity import new_id
from mleredux_server.accounts.security import Caller, Reader, Runner
from mleredux_server.database.tables import Delivery, Webhook, now
from mleredux_server.operations.deliverer import MOST_WEBHOOKS, PREFIX, check_url
from mleredux_server.operations.messages import EVENTS, probe
from mleredux_server.protocol.problems import Problem, not_found
from mleredux_server.runs.creation import project_for
from mleredux_server.runs.lists import of_project
from mleredux_server.runs.views import as_view
from mleredux_server.schemas.pages import Page, Pages
from mleredux_server.schemas.webhooks import NewWebhook, WebhookRequest
from mleredux_server.service import Current

router = APIRouter(prefix="/v1/webhooks", tags=["accounts"])
_WHAT = "a project's webhooks"

Project = Annotated[str | None, Query(max_length=512, description="Id or name.")]


@router.post("", status_code=201)
def create_webhook(body: WebhookRequest, caller: Runner, service: Current) -> NewWebhook:
    """Create a webhook of a project (owners); its secret is returned here and nowhere else."""
    check_url(body.url, service.settings.webhook_hosts)
    secret = PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
    with service.database.writing() as session:
        project = project_for(session, caller, body.project)
        check_owner(caller, project.id, _WHAT)
        if (session.scalar(select(func.count()).where(Webhook.project_id == project.id)) or 0) >= MOST_WEBHOOKS:
            raise Problem("conflict", f"The project has {MOST_WEBHOOKS} webhooks.", hint="Delete some.")
        hook = Webhook(id=new_id("whk"), project_id=project.id, user_id=caller.user_id, url=body.url)
        hook.events, hook.created_at = sorted(set(body.events or EVENTS)), now()
        hook.secret = service.vault.lock(f"{project.id}:{hook.id}", secret)
        session.add(hook)
        note(session, caller, "webhook.create", f"{project.id} {hook.id}")
        view = as_view(WebhookView, hook)
    return NewWebhook(**view.model_dump(), secret=secret)


@router.get("")
def list_webhooks(caller: Reader, service: Current, paging: Pages, project: Project = None) -> Page[WebhookView]:
    """List webhooks of the caller's projects."""
    with service.database.reading() as session:
        query = select(Webhook).where(*of_project(session, caller, Webhook.project_id, project))
        rows = session.scalars(query.order_by(Webhook.id)).all()
    return paging.page_of_all(rows, lambda row: row.id, lambda row: as_view(WebhookView, row))


@router.get("/{webhook_id}/deliveries")
def list_deliveries(webhook_id: str, caller: Reader, service: Current, paging: Pages) -> Page[DeliveryView]:
    """List the messages of a webhook, newest first, with their delivery status."""
    with service.database.reading() as session:
        hook = _visible_webhook(session, caller, webhook_id)
        query = select(Delivery).where(Delivery.webhook_id == hook.id)
        rows = session.scalars(query.order_by(Delivery.created_at.desc(), Delivery.id).limit(500)).all()
    return paging.page_by_number(rows, lambda row: as_view(DeliveryView, row))


@router.post("/{webhook_id}/test", status_code=202)
def send_test(webhook_id: str, caller: Runner, service: Current) -> DeliveryView:
    """Send a message for the event `test` (owners)."""
    with service.database.writing() as session:
        hook = _visible_webhook(session, caller, webhook_id)
        check_owner(caller, hook.project_id, _WHAT)
        return as_view(DeliveryView, probe(session, hook))


@router.delete("/{webhook_id}", status_code=204)
def delete_webhook(webhook_id: str, caller: Runner, service: Current) -> None:
    """Delete a webhook (owners); messages that have not been delivered yet are dropped."""
    with service.database.writing() as session:
        hook = _visible_webhook(session, caller, webhook_id)
        check_owner(caller, hook.project_id, _WHAT)
        session.delete(hook)
        note(session, caller, "webhook.delete", f"{hook.project_id} {hook.id}")


def _visible_webhook(session: Session, caller: Caller, webhook_id: str) -> Webhook:
    hook = session.get(Webhook, webhook_id)
    if hook is None or not caller.sees(hook.project_id):
        raise not_found("webhook", webhook_id)
    return hook
