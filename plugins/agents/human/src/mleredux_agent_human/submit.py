"""`mleredux human submit`."""

from __future__ import annotations

from pathlib import Path

import click
from mleredux.plugin.command import json_option, print_json, runs_dir_option

from mleredux_agent_human.workspace import find_run, send


@click.command("submit")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--run", "name", metavar="RUN", help="The run, or `last`.  [default: the run of the current folder]")
@runs_dir_option
@json_option
@click.pass_context
def command(ctx: click.Context, file: Path | None, name: str | None, runs_dir: str | None, as_json: bool) -> None:
    """Submit FILE in a workspace opened by `mleredux human start`; its format is checked, and the last file counts.

    Without FILE, the file that the task expects is checked in place.

    \b
    Exit codes: 0 well-formed · 1 error · 2 usage · 3 not well-formed
    """
    answer = send(find_run(ctx, name, runs_dir), "submit", file)
    if as_json:
        print_json(answer)
    else:
        click.echo(answer["message"])
    ctx.exit(0 if answer["valid"] else 3)
