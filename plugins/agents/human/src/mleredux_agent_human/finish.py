"""`mleredux human finish`."""

from __future__ import annotations

import time

import click
from mleredux.plugin.command import backend, runs_dir_option
from mleredux_agentkit.wire import NoSession, request

from mleredux_agent_human.start import follow
from mleredux_agent_human.workspace import find_run, send


@click.command("finish")
@click.option("--run", "name", metavar="RUN", help="The run, or `last`.  [default: the run of the current folder]")
@runs_dir_option
@click.pass_context
def command(ctx: click.Context, name: str | None, runs_dir: str | None) -> None:
    """Finish working in a workspace opened by `mleredux human start`, and show the grade once it is due."""
    run = find_run(ctx, name, runs_dir)
    click.echo(send(run, "finish")["message"])
    while True:
        try:
            request(run.output_dir, "clock")
            time.sleep(0.1)
        except NoSession:
            break
    follow(backend(ctx, runs_dir=str(run.path.parent)), run)
