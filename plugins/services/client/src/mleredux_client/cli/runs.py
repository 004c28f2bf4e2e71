"""`mleredux runs` on a server."""

from __future__ import annotations

import sys
from itertools import islice
from typing import Any

import click
from mleredux._core.cli import runs as local
from mleredux.plugin.command import json_option, print_json

from mleredux_client.calls import create, segment
from mleredux_client.cli.records import FINAL, record_of, row_of, shown_of
from mleredux_client.cli.run import labels_of, see_through
from mleredux_client.cli.service import service, service_option
from mleredux_client.cli.twins import RemoteGroup
from mleredux_client.errors import NotFound

_EXPERIMENT = click.option("--experiment", metavar="ID", help="Only runs of this experiment.")


@click.group(cls=RemoteGroup, invoke_without_command=True)
@click.option("--task", help="Only runs of this task.")
@click.option("--agent", help="Only runs of this agent.")
@click.option("--status", "statuses", multiple=True, help="Only runs in this state; several are added up.")
@click.option("--medal", type=click.Choice(("gold", "silver", "bronze")), help="Only runs with this medal.")
@click.option("--project", metavar="NAME", help="Only runs of this project.")
@_EXPERIMENT
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Only runs with this label.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@json_option
@click.pass_context
def runs(
    ctx: click.Context, /, statuses: tuple[str, ...], labels: tuple[str, ...], limit: int, as_json: bool, **equal: Any
) -> None:
    """List runs of the server, newest first; show, wait, cancel, retry, delete them."""
    if ctx.invoked_subcommand is not None:
        return
    there = service(ctx)
    wanted = [f"{key}:{value}" for key, value in labels_of(labels).items()]
    filters = {**equal, "status": list(statuses), "label": wanted}
    found = list(islice(there.pages("/v1/runs", filters, limit + 1), limit + 1))
    rows = [row_of(run) for run in found[:limit]]
    if as_json:
        print_json(rows)
    elif not rows:
        such = "such " if any(filters.values()) else ""
        click.echo(f"There are no {such}runs on {there.url}.")
    else:
        whose = ("user",) if len({row["user"] for row in rows}) > 1 else ()
        local.print_rows(rows, "more" if len(found) > limit else None, whose)


@runs.command()
@click.argument("run")
@json_option
@click.pass_context
def show(ctx: click.Context, run: str, as_json: bool) -> None:
    """Show one run: by id, a part of it, or `last`."""
    there = service(ctx)
    found = there.get(f"/v1/runs/{there.run(run)['id']}")
    if as_json:
        print_json(record_of(found, there.url))
        return
    from mleredux.plugin.artifact import Event
    from mleredux.plugin.command import closing_table

    closing_table([shown_of(found, f"mleredux artifacts {found['id']}{service_option(ctx)}")])
    told = there.pages(f"/v1/runs/{found['id']}/events", {})
    local.print_events(Event.model_validate(event, extra="ignore") for event in told)
    if found["status"] == "queued" and found.get("waiting_for"):
        click.echo(f"Queued: {found['waiting_for']}")


@runs.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.pass_context
def delete(ctx: click.Context, runs: tuple[str, ...], yes: bool) -> None:
    """Delete runs and everything they left, on the server."""
    there = service(ctx)
    found = [there.run(name)["id"] for name in runs]
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Deleting needs --yes where nobody can be asked.")
        click.confirm(f"Delete {', '.join(found)} on {there.url}?", abort=True)
    for run_id in found:
        there.delete(f"/v1/runs/{run_id}")
        click.echo(f"Deleted {run_id}.")


@runs.command()
@click.argument("runs", nargs=-1)
@click.option("--experiment", metavar="ID", help="All runs of this experiment.")
@click.option("--follow", is_flag=True, help="Show the agents' logs while they work.")
@json_option
@click.pass_context
def wait(ctx: click.Context, runs: tuple[str, ...], experiment: str | None, follow: bool, as_json: bool) -> None:
    """Wait until runs have ended, and show them; exit codes are those of `mleredux run`."""
    if bool(runs) == (experiment is not None):
        raise click.UsageError("Name runs, or an experiment with --experiment.")
    there = service(ctx)
    if experiment is not None:
        found = there.get(f"/v1/experiments/{segment(experiment)}")["runs"]
        if not found:
            raise NotFound(f"Experiment {experiment} has no runs any more.", hint="See `mleredux runs`.")
    else:
        found = [there.run(name) for name in dict.fromkeys(runs)]
    see_through(ctx, found, experiment, several=experiment is not None or len(runs) > 1, follow=follow, as_json=as_json)


@runs.command()
@click.argument("runs", nargs=-1)
@click.option("--experiment", metavar="ID", help="All runs of this experiment that have not ended.")
@click.pass_context
def cancel(ctx: click.Context, runs: tuple[str, ...], experiment: str | None) -> None:
    """Stop runs; what there is of them is kept."""
    if bool(runs) == (experiment is not None):
        raise click.UsageError("Name runs, or an experiment with --experiment.")
    there = service(ctx)
    if experiment is not None:
        there.cancel([], experiment)
        click.echo(f"Asked experiment {experiment} to stop.")
        return
    for run in [there.run(name) for name in runs]:
        told = there.act(f"/v1/runs/{run['id']}/cancel")
        if run["status"] in FINAL:
            click.echo(f"{run['id']} is {told['status']} already.")
        else:
            click.echo(f"Asked {run['id']} to stop.")


@runs.command()
@click.argument("runs", nargs=-1, required=True)
@json_option
@click.pass_context
def retry(ctx: click.Context, runs: tuple[str, ...], as_json: bool) -> None:
    """Try runs again that have ended: on from where they were, or anew where that was the agent's doing."""
    there = service(ctx)
    records = []
    for run in [there.run(name) for name in runs]:
        told = there.json(create(f"/v1/runs/{run['id']}/retry", {}))
        records.append(record_of(told, there.url))
        if not as_json:
            same = told["id"] == run["id"]
            click.echo(f"{run['id']} goes on." if same else f"{told['id']} tries anew what {run['id']} did.")
    if as_json:
        print_json(records if len(runs) > 1 else records[0])
