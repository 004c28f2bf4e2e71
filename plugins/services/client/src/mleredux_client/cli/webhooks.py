"""`mleredux account webhook`: URLs that are notified of events in a project."""

from __future__ import annotations

import click
from mleredux.plugin.command import json_option, print_json, print_table

from mleredux_client.calls import create, known, segment
from mleredux_client.cli.context import add_list, service

_EVENTS = ("run.ended", "experiment.ended")
_id = click.argument("webhook_id", metavar="ID")


@click.group()
def webhook() -> None:
    """Manage webhooks: URLs that are notified of events in a project (for its owners)."""


@webhook.command("create")
@click.argument("url")
@click.option("--event", "events", multiple=True, type=click.Choice(_EVENTS), help="[default: all]")
@click.option("--project", metavar="NAME", help="The project.  [default: yours]")
@json_option
@click.pass_context
def create_webhook(ctx: click.Context, url: str, events: tuple[str, ...], project: str | None, as_json: bool) -> None:
    """Send events to URL, and print the secret that verifies signatures; it will not be shown again."""
    hook = service(ctx).json(create("/v1/webhooks", known({"url": url, "events": events or None, "project": project})))
    if as_json:
        print_json(hook)
        return
    click.echo(hook["secret"])
    click.echo(f"The secret will not be shown again. Test it: `mleredux account webhook test {hook['id']}`.", err=True)


add_list(webhook, "webhook", ("id", "project", "url", "events", "disabled_at"), "List webhooks of your projects.")


@webhook.command("test")
@_id
@click.pass_context
def send_test(ctx: click.Context, webhook_id: str) -> None:
    """Send a message for the event `test`."""
    message = service(ctx).json(create(f"/v1/webhooks/{segment(webhook_id)}/test", {}))
    click.echo(f"{message['id']} is sent. `mleredux account webhook deliveries {webhook_id}` shows the result.")


@webhook.command("deliveries")
@_id
@json_option
@click.pass_context
def list_deliveries(ctx: click.Context, webhook_id: str, as_json: bool) -> None:
    """List a webhook's messages with their delivery status, newest first."""
    rows = list(service(ctx).pages(f"/v1/webhooks/{segment(webhook_id)}/deliveries", {}))
    print_table(rows, ("id", "event", "attempts", "status", "message", "delivered_at"), as_json=as_json)


@webhook.command("delete")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.pass_context
def delete_webhooks(ctx: click.Context, ids: tuple[str, ...]) -> None:
    """Delete webhooks by their ids; messages that have not been delivered yet are dropped."""
    for webhook_id in ids:
        service(ctx).delete(f"/v1/webhooks/{segment(webhook_id)}")
        click.echo(f"Deleted {webhook_id}.")
