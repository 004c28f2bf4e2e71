"""`mleredux list`."""

from __future__ import annotations

from typing import Any

import click

from mleredux._core.cli.context import backend, catalogue
from mleredux._core.cli.options import data_dir_option, json_option, server_of
from mleredux._core.cli.output import echo, print_json, print_table
from mleredux._core.records import listed

COLUMNS = {
    "tasks": ("id", "category", "metric", "direction", "complexity", "size_gb", "prepared", "plugin", "title"),
    "techniques": ("id", "title", "variants", "plugin"),
    "agents": ("id", "network", "sandboxes", "title", "version", "plugin"),
    "graders": ("id", "direction", "title", "plugin"),
    "sandboxes": ("id", "isolated", "builds", "networks", "gpus", "title", "writable_root", "plugin"),
    "formats": ("id", "suffix", "together", "title", "plugin"),
    "executors": ("id", "title", "plugin"),
    "tools": ("id", "kind", "title", "version", "plugin"),
}
"""Kinds of objects, with the columns of their tables."""
_MISSING = {"tasks": "pip install 'mleredux[starter]'", "agents": "pip install 'mleredux[starter]'"}


@click.command()
@click.argument("kind", type=click.Choice(tuple(COLUMNS)), default="tasks")
@click.option("--set", "sets", multiple=True, metavar="NAME", help="Only tasks of this set (low, starter, all …).")
@click.option("--category", help="Only tasks of this category.")
@click.option("--technique", metavar="ID", help="List the tasks derived by this technique (cv, missing, …).")
@data_dir_option
@json_option
@click.pass_context
def command(ctx: click.Context, /, kind: str, data_dir: str | None, as_json: bool, **filters: Any) -> None:
    """List installed tasks, techniques, agents, graders, sandboxes, formats, executors or tools."""
    filtered = [name.removesuffix("s") for name, value in filters.items() if value]
    if kind != "tasks" and filtered:
        raise click.UsageError(f"--{filtered[0]} only filters tasks; omit it.")
    if kind in ("formats", "executors", "tools"):  # the objects of this machine, which uses them
        rows = listed(catalogue(ctx), kind)
    else:
        rows = backend(ctx, data_dir=data_dir).listed(kind, **filters)
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo(f"There are no {'such ' if filtered else ''}{kind}.")
        if not filtered and server_of(ctx) is None:
            click.echo(f"Install some: `{_MISSING.get(kind, 'mleredux plugins search')}`.", err=True)
        return
    print_table(rows, COLUMNS[kind])
    if server_of(ctx) is None:
        for problem in catalogue(ctx).problems():
            echo(f"Warning: {problem}", err=True)
