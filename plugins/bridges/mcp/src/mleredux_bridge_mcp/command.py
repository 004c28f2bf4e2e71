"""`mleredux mcp`."""

from __future__ import annotations

from typing import Any

import click
from mleredux.plugin.command import Duration, data_dir_option, runs_dir_option


@click.command("mcp")
@click.argument("task")
@click.option("--sandbox", metavar="ID", help="Sandbox to work in.  [default: the best one here]")
@click.option("--time-limit", type=Duration(), help="Time limit: 90s, 30m, 2h.  [default: 1h]")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Random seed.")
@runs_dir_option
@data_dir_option
def command(task: str, **how: Any) -> None:
    """Serve TASK to a Model Context Protocol client on standard input and output.

    The client's work is recorded as a run, with a grade and rollout like any other. It ends when the
    client submits or disconnects, or at the time limit. The client does not see the score; `mleredux runs` shows it.
    """
    from mleredux_agents import open_session

    from mleredux_bridge_mcp.server import make_server

    with open_session(task, "mcp", detached=True, **how) as session:
        click.echo(f"{session.run.id} is open.", err=True)
        make_server(session).run("stdio")
        session.finish()  # this continues even if the client now kills this process
        click.echo(f"{session.run.id} has been graded: mleredux runs show {session.run.id}", err=True)
