"""`mleredux logs`."""

from __future__ import annotations

import sys

import click

from mleredux._core.cli.context import backend
from mleredux._core.cli.options import runs_dir_option
from mleredux._core.cli.output import printable


@click.command()
@click.argument("run", default="last")
@click.option("--build", "build", is_flag=True, help="Show the log of the image build instead of the agent's.")
@click.option("--follow", "-f", is_flag=True, help="Keep printing until the run has ended.")
@click.option("--raw", is_flag=True, help="Print bytes unchanged, including control characters.")
@runs_dir_option
@click.pass_context
def command(ctx: click.Context, run: str, build: bool, follow: bool, raw: bool, runs_dir: str | None) -> None:
    """Show the log of RUN: an id, part of an id, or `last`."""
    there = backend(ctx, runs_dir=runs_dir)
    for block in there.log(there.find(run), build=build, follow=follow):
        sys.stdout.buffer.write(block if raw else printable(block).encode())
        sys.stdout.flush()
