"""`mleredux runs wait` and `mleredux runs retry`."""

from __future__ import annotations

import click
from mleredux.plugin.command import json_option, print_json, see_through

from mleredux_client.calls import create, segment
from mleredux_client.cli.records import record_of
from mleredux_client.cli.service import ServerCommand, server, service
from mleredux_client.errors import NotFound


@click.command(cls=ServerCommand, place="server")
@click.argument("runs", nargs=-1)
@click.option("--experiment", metavar="ID", help="All runs of this experiment.")
@click.option("--follow", is_flag=True, help="Show the agents' logs while they run.")
@json_option
@click.pass_context
def wait(ctx: click.Context, runs: tuple[str, ...], experiment: str | None, follow: bool, as_json: bool) -> None:
    """Wait until runs have ended, and show them; exit codes are those of `mleredux run`."""
    if bool(runs) == (experiment is not None):
        raise click.UsageError("Name runs, or an experiment with --experiment.")
    there = server(ctx)
    if experiment is not None:
        found = there.service.get(f"/v1/experiments/{segment(experiment)}")["runs"]
        if not found:
            raise NotFound(f"Experiment {experiment} has no runs any more.", hint="See `mleredux runs`.")
    else:
        found = [there.service.run(name) for name in dict.fromkeys(runs)]
    several = experiment is not None or len(runs) > 1
    see_through(ctx, there, there.batch(found, experiment), several=several, follow=follow, as_json=as_json)


@click.command(cls=ServerCommand, place="server")
@click.argument("runs", nargs=-1, required=True)
@json_option
@click.pass_context
def retry(ctx: click.Context, runs: tuple[str, ...], as_json: bool) -> None:
    """Retry runs that have ended: from where they were, or from the start where the agent was at fault."""
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
