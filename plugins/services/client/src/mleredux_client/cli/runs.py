"""`mleredux runs wait`, `retry` and `change`."""

from __future__ import annotations

from typing import Any

import click
from mleredux.plugin.command import follow_runs, json_option, print_json, read_labels

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
    remote = server(ctx)
    if experiment is not None:
        records = remote.service.get(f"/v1/experiments/{segment(experiment)}")["runs"]
        if not records:
            raise NotFound(f"Experiment {experiment} no longer has any runs.", hint="See `mleredux runs`.")
    else:
        records = [remote.service.run(name) for name in dict.fromkeys(runs)]
    several = experiment is not None or len(runs) > 1
    follow_runs(ctx, remote, remote.batch(records, experiment), several=several, follow=follow, as_json=as_json)


@click.command(cls=ServerCommand, place="server")
@click.argument("runs", nargs=-1, required=True)
@json_option
@click.pass_context
def retry(ctx: click.Context, runs: tuple[str, ...], as_json: bool) -> None:
    """Retry runs that have ended: resume them, or start again if the agent was the cause."""
    remote = service(ctx)
    records = []
    for run in [remote.run(name) for name in runs]:
        retried = remote.json(create(f"/v1/runs/{run['id']}/retry", {}))
        records.append(record_of(retried, remote.url))
        if not as_json:
            same = retried["id"] == run["id"]
            click.echo(f"{run['id']} is resumed." if same else f"{retried['id']} retries {run['id']} from the start.")
    if as_json:
        print_json(records if len(runs) > 1 else records[0])


@click.command(cls=ServerCommand, place="server")
@click.argument("runs", nargs=-1, required=True)
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Set a label; KEY= removes it.")
@click.option("--note", "notes", metavar="TEXT", help="Replace the notes; empty text removes them.")
@click.option("--priority", type=click.IntRange(-100, 100), help="Priority among your own queued runs.")
@click.option("--pin/--no-pin", "pinned", default=None, help="Exempt the run from the retention rules, or undo this.")
@json_option
@click.pass_context
def change(ctx: click.Context, /, runs: tuple[str, ...], labels: tuple[str, ...], as_json: bool, **fields: Any) -> None:
    """Change labels, notes and pins of runs, and the priority of queued ones."""
    body = known(fields)
    if labels:
        body["labels"] = {key: value or None for key, value in read_labels(labels).items()}
    if not body:
        raise click.UsageError("Specify what to change, such as --priority 10 or --label best=yes.")
    remote = service(ctx)
    ids = [remote.run(name)["id"] for name in dict.fromkeys(runs)]
    rows = remote.json(Call("POST", "/v1/runs/bulk", json={"action": "change", "runs": ids, "change": body}))["results"]
    if as_json:
        print_json(rows)
    for row in [] if as_json else rows:
        click.echo(f"{row['run']} was changed." if row["ok"] else f"{row['run']}: {row['message']}", err=not row["ok"])
    if not all(row["ok"] for row in rows):
        ctx.exit(1)
