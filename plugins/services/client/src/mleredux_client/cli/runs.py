"""`mleredux runs wait`, `retry` and `change`."""

from __future__ import annotations

from typing import Any

import click
from mleredux.plugin.command import json_option, print_json, read_labels, see_through

from mleredux_client.calls import Call, create, known, segment
from mleredux_client.cli.context import ServerCommand, server, service
from mleredux_client.cli.records import record_of
from mleredux_client.errors import NotFound


@click.command(cls=ServerCommand, place="server")
@click.argument("runs", nargs=-1)
@click.option("--experiment", metavar="ID", help="All runs of this experiment.")
@click.option("--follow", is_flag=True, help="Show the agents' logs while they run.")
@json_option
@click.pass_context
def wait(ctx: click.Context, runs: tuple[str, ...], experiment: str | None, follow: bool, as_json: bool) -> None:
    """Wait until runs have ended, and show them; exit codes are as for `mleredux run`."""
    if bool(runs) == (experiment is not None):
        raise click.UsageError("Specify runs, or an experiment with --experiment.")
    there = server(ctx)
    if experiment is not None:
        found = there.service.get(f"/v1/experiments/{segment(experiment)}")["runs"]
        if not found:
            raise NotFound(f"Experiment {experiment} no longer has any runs.", hint="See `mleredux runs`.")
    else:
        found = [there.service.run(name) for name in dict.fromkeys(runs)]
    several = experiment is not None or len(runs) > 1
    see_through(ctx, there, there.batch(found, experiment), several=several, follow=follow, as_json=as_json)


@click.command(cls=ServerCommand, place="server")
@click.argument("runs", nargs=-1, required=True)
@json_option
@click.pass_context
def retry(ctx: click.Context, runs: tuple[str, ...], as_json: bool) -> None:
    """Retry runs that have ended: resume them, or start again if the agent was the cause."""
    there = service(ctx)
    records = []
    for run in [there.run(name) for name in runs]:
        told = there.json(create(f"/v1/runs/{run['id']}/retry", {}))
        records.append(record_of(told, there.url))
        if not as_json:
            same = told["id"] == run["id"]
            click.echo(f"{run['id']} is resumed." if same else f"{told['id']} retries {run['id']} from the start.")
    if as_json:
        print_json(records if len(runs) > 1 else records[0])


@click.command(cls=ServerCommand, place="server")
@click.argument("runs", nargs=-1, required=True)
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Set a label; KEY= removes it.")
@click.option("--note", "notes", metavar="TEXT", help="Replace the notes; an empty text removes them.")
@click.option("--priority", type=click.IntRange(-100, 100), help="Priority among your own queued runs.")
@click.option("--pin/--no-pin", "pinned", default=None, help="Exempt the run from the retention rules, or end this.")
@json_option
@click.pass_context
def change(ctx: click.Context, /, runs: tuple[str, ...], labels: tuple[str, ...], as_json: bool, **asked: Any) -> None:
    """Change labels, notes and pins of runs, and the priority of queued ones."""
    body = known(asked)
    if labels:
        body["labels"] = {key: value or None for key, value in read_labels(labels).items()}
    if not body:
        raise click.UsageError("Specify what to change, such as --priority 10 or --label best=yes.")
    there = service(ctx)
    ids = [there.run(name)["id"] for name in dict.fromkeys(runs)]
    told = there.json(Call("POST", "/v1/runs/bulk", json={"action": "change", "runs": ids, "change": body}))["results"]
    if as_json:
        print_json(told)
    for one in [] if as_json else told:
        click.echo(f"{one['run']} was changed." if one["ok"] else f"{one['run']}: {one['message']}", err=not one["ok"])
    if not all(one["ok"] for one in told):
        ctx.exit(1)
