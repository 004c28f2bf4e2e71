"""`mleredux list`, `mleredux show` and `mleredux agent` on a server."""

from __future__ import annotations

from typing import Any

import click
from mleredux._core.cli import agent as local_agent
from mleredux._core.cli import list as local_list
from mleredux._core.cli import show as local_show
from mleredux.plugin.command import json_option, print_json, print_table

from mleredux_client.calls import segment
from mleredux_client.cli.service import service
from mleredux_client.cli.twins import RemoteGroup, twin

_FILTERS = {"sets": "--set", "category": "--category", "technique": "--technique"}


@twin("list", local_list.command, help="List tasks, techniques, agents, graders or sandboxes of the server.")
def listing(ctx: click.Context, kind: str, as_json: bool, **filters: Any) -> None:
    """List what a server has."""
    for name, option in _FILTERS.items():
        if kind != "tasks" and filters[name]:
            raise click.UsageError(f"{option} chooses among tasks; leave it out.")
    rows: dict[str, dict[str, Any]] = {}
    for wanted in filters["sets"] or (None,):
        params = {"set": wanted, "category": filters["category"], "technique": filters["technique"]}
        rows |= {row["id"]: row for row in service(ctx).pages(f"/v1/{kind}", params if kind == "tasks" else {})}
    listed = list(rows.values())
    if as_json:
        print_json(listed)
    else:
        print_table(listed, local_list.COLUMNS[kind])


@twin("show", local_show.command, help="Show a task of the server: its description, metric, medals.")
def show(ctx: click.Context, task: str, obfuscated: bool, as_json: bool) -> None:
    """Show a task."""
    params = {"obfuscated": "true"} if obfuscated else {}
    local_show.print_task(service(ctx).get(f"/v1/tasks/{segment(task)}", params), as_json=as_json)


@click.group("agent", cls=RemoteGroup)
def agents() -> None:
    """Look at agents of the server, build what they need."""


@agents.command("show")
@click.argument("agent")
@json_option
@click.pass_context
def show_agent(ctx: click.Context, agent: str, as_json: bool) -> None:
    """Show an agent: command, options, limits."""
    local_agent.print_agent(service(ctx).get(f"/v1/agents/{segment(agent)}"), as_json=as_json)
