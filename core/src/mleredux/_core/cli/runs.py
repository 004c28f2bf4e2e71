"""`mleredux runs`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from mleredux._core.cli.backend import Backend
from mleredux._core.cli.context import backend
from mleredux._core.cli.groups import CommandGroup
from mleredux._core.cli.output import json_option, print_json, print_table, runs_dir_option, safe
from mleredux._core.cli.run import read_labels
from mleredux._core.cli.server import local_option, server_of, server_option

GIVE_WAY = ("id", "task", "agent")
COLUMNS = ("id", "status", "score", "medal", "verdict", "cause", "task", "agent")


@click.group(cls=CommandGroup, here=("index",), invoke_without_command=True)
@click.option("--task", help="Only runs of this task.")
@click.option("--agent", help="Only runs of this agent.")
@click.option("--status", multiple=True, help="Only runs in this state; can be repeated.")
@click.option("--medal", type=click.Choice(("gold", "silver", "bronze")), help="Only runs with this medal.")
@click.option(
    "--verdict",
    type=click.Choice(("verified", "not reproducible", "not checked", "tainted")),
    help="Only runs whose result has this verdict.",
)
@server_option("--project", metavar="NAME", help="Only runs of this project.")
@click.option("--experiment", metavar="NAME", help="Only runs of this experiment; on a server its id.")
@local_option("--arm", metavar="NAME", help="Only runs of this arm.", why="use `mleredux experiment status`.")
@server_option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Only runs with this label.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Maximum number of runs to list."
)
@runs_dir_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    labels: tuple[str, ...],
    limit: int,
    runs_dir: str | None,
    as_json: bool,
    **equal: Any,
) -> None:
    """List runs, newest first; or show, cancel, delete, or index them."""
    if server_of(ctx) is None:
        from mleredux._core.store import RunStore

        ctx.obj = RunStore(runs_dir)  # for commands that run on this machine only, including those of plugins
    if ctx.invoked_subcommand is not None:
        return
    there = backend(ctx, runs_dir=runs_dir)
    filters = {**equal, "label": tuple(f"{key}:{value}" for key, value in read_labels(labels).items())}
    rows, more = there.runs(filters, limit)
    if as_json:
        print_json(rows)
    elif not rows:
        click.echo(f"There are no {'such ' if any(filters.values()) else ''}runs {there.place}.")
    else:
        whose = ("user",) if len({row.get("user") for row in rows}) > 1 else ()
        print_table(rows, (*COLUMNS, *whose), GIVE_WAY)
        if more is not None:
            click.echo(f"… and {more} (--limit)")


@command.command()
@click.argument("run")
@json_option
@click.pass_context
def show(ctx: click.Context, run: str, as_json: bool) -> None:
    """Show one run: an id, a part of one, or `last`."""
    from mleredux._core.cli.run_table import closing_table

    there = _backend(ctx)
    run_id = there.find(run)
    view = there.view(run_id)
    if as_json:
        print_json(view.record)
        return
    closing_table([view])
    for event in there.events(run_id):
        facts = "  ".join(f"{key}={_short(value)}" for key, value in event.data.items() if value is not None)
        click.echo(safe(f"{event.time:%H:%M:%S}  {event.type.ljust(10)}  {facts}"))
    if view.waiting_for:
        click.echo(safe(f"Queued: {view.waiting_for}"))


@command.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_context
def delete(ctx: click.Context, runs: tuple[str, ...], yes: bool) -> None:
    """Delete runs with all their files."""
    there = _backend(ctx)
    found = [there.find(name) for name in runs]
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Without a terminal, deleting needs --yes.")
        click.confirm(f"Delete {', '.join(found)} {there.place}?", abort=True)
    for run_id in found:
        there.delete(run_id)
        click.echo(f"Deleted {run_id}.")


@command.command()
@click.argument("runs", nargs=-1)
@server_option("--experiment", metavar="ID", help="All runs of this experiment that have not ended.")
@click.pass_context
def cancel(ctx: click.Context, runs: tuple[str, ...], experiment: str | None) -> None:
    """Cancel runs; their files are kept."""
    if bool(runs) == (experiment is not None):
        raise click.UsageError("Give runs, or on a server an experiment with --experiment.")
    for sentence in _backend(ctx).cancel(runs, experiment):
        click.echo(sentence)


@command.command()
@click.pass_obj
def index(store: Any) -> None:
    """Rebuild the index from the run directories."""
    click.echo(f"Indexed {store.rebuild()} runs in {Path(store.path) / 'index.sqlite'}.")


def _backend(ctx: click.Context) -> Backend:
    assert ctx.parent is not None
    return backend(ctx, runs_dir=ctx.parent.params["runs_dir"])


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 100 else f"{text[:99]}…"
