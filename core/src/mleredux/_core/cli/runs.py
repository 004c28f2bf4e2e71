"""`mleredux runs`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mleredux._core.cli.groups import VerbGroup
from mleredux._core.cli.output import json_option, print_json, print_table, runs_dir_option, safe

if TYPE_CHECKING:
    from mleredux._core.models import Event


@click.group(cls=VerbGroup, invoke_without_command=True)
@click.option("--task", help="Only runs of this task.")
@click.option("--agent", help="Only runs of this agent.")
@click.option("--status", help="Only runs in this state.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@runs_dir_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, task: str | None, agent: str | None, status: str | None, limit: int, **asked: Any
) -> None:
    """List runs, newest first; or show, cancel, delete, or index them."""
    from mleredux._core.store import RunStore

    ctx.obj = RunStore(asked["runs_dir"])
    if ctx.invoked_subcommand is not None:
        return
    rows = ctx.obj.list(task=task, agent=agent, status=status)
    if asked["as_json"]:
        print_json(rows[:limit])
        return
    if not rows:
        click.echo(f"There are no runs in {ctx.obj.path}.")
        return
    print_rows(rows[:limit], f"{len(rows) - limit} more" if len(rows) > limit else None)


@command.command()
@click.argument("run")
@json_option
@click.pass_obj
def show(store: Any, run: str, as_json: bool) -> None:
    """Show one run: by id, a part of it, or `last`."""
    from mleredux._core.cli.summary import Shown, closing_table

    found = store.get(run)
    if as_json:
        print_json(found.record())
        return
    closing_table([Shown.of(found)])
    print_events(found.events())


@command.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.pass_obj
def delete(store: Any, runs: tuple[str, ...], yes: bool) -> None:
    """Delete runs and everything they left."""
    import sys

    found = [store.get(name) for name in runs]
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Deleting needs --yes where nobody can be asked.")
        click.confirm(f"Delete {', '.join(run.id for run in found)}?", abort=True)
    for run in found:
        store.delete(run)
        click.echo(f"Deleted {run.id}.")


@command.command()
@click.argument("runs", nargs=-1, required=True)
@click.pass_obj
def cancel(store: Any, runs: tuple[str, ...]) -> None:
    """Stop runs, wherever they go on; what there is of them is kept."""
    for run in [store.get(name) for name in runs]:
        if run.state.final:
            click.echo(f"{run.id} is {run.state} already.")
        elif run.alive:
            run.ask_to_cancel()
            click.echo(f"Asked {run.id} to stop.")
        else:
            click.echo(f"Nobody works on {run.id}; `mleredux run --resume` goes on with it, `runs delete` removes it.")


@command.command()
@click.pass_obj
def index(store: Any) -> None:
    """Make the index anew from the run directories."""
    click.echo(f"Indexed {store.rebuild()} runs in {Path(store.path) / 'index.sqlite'}.")


def print_events(events: Iterable[Event]) -> None:
    """A line each."""
    for event in events:
        facts = "  ".join(f"{key}={_short(value)}" for key, value in event.data.items() if value is not None)
        click.echo(safe(f"{event.time:%H:%M:%S}  {event.type.ljust(10)}  {facts}"))


def print_rows(rows: list[dict[str, Any]], more: str | None, further: Sequence[str] = ()) -> None:
    """Runs, a row each.

    Args:
        more: How many there are besides, in words (`17 more`); None where these are all.
        further: Columns besides the usual ones.
    """
    print_table(rows, ("id", "task", "agent", "status", "cause", "score", "medal", *further))
    if more is not None:
        click.echo(f"… and {more} (--limit)")


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 100 else f"{text[:99]}…"
