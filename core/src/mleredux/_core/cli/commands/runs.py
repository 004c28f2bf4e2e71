"""`mleredux runs`."""

from __future__ import annotations

import csv
import json
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import click

from mleredux._core.cli.backend import Backend
from mleredux._core.cli.commands.run import read_labels
from mleredux._core.cli.context import backend
from mleredux._core.cli.groups import CommandGroup
from mleredux._core.cli.options import Since, json_option, local_option, runs_dir_option, server_of, server_option
from mleredux._core.cli.output import cell, cut, print_json, print_table, safe
from mleredux.models.formats import counted, duration, score, short_reference
from mleredux.models.verdict import VerdictStatus

COLUMNS = (
    "task", "agent", "seed", "status", "score", "medal", "percent", "time", "working", "tokens", "cost", "verdict",
    "cause", "id",
)  # fmt: skip
"""Columns of the list; a server adds the owner."""
LEAST = {"agent": 12, "task": 10, "id": 7}
"""Minimum widths of columns that are shortened if the terminal is too narrow, in this order."""
_OPTIONAL = ("working", "tokens", "cost", "verdict", "cause", "percent", "medal")
"""Columns that are omitted if no run has a value."""
_YIELDING = ("verdict", "cause", "tokens", "cost", "working", "time", "percent")
"""Columns that are omitted, one by one, below a width of `_NARROW`; the verdict only if no run is marked."""
_PLAIN_VERDICTS = (None, "not checked", "verified")
_NARROW = 100
_ALL = 10**9


@click.group(cls=CommandGroup, here=("reindex",), renamed={"index": "reindex"}, invoke_without_command=True)
@click.option("--task", help="Only runs of this task.")
@click.option("--agent", help="Only runs of this agent.")
@click.option("--status", multiple=True, help="Only runs in this state; can be repeated.")
@click.option("--medal", type=click.Choice(("gold", "silver", "bronze")), help="Only runs with this medal.")
@click.option("--verdict", type=click.Choice(get_args(VerdictStatus)), help="Only runs whose result has this verdict.")
@server_option("--project", metavar="NAME", help="Only runs of this project.")
@click.option("--experiment", metavar="NAME", help="Only runs of this experiment; on a server, specify its id.")
@local_option("--arm", metavar="NAME", help="Only runs of this arm.", why="use `mleredux experiment status`.")
@server_option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Only runs with this label.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Maximum number of runs to list."
)
@click.option(
    "--since", type=Since(), metavar="TIME", help="Only runs newer than this age or date: 2h, 7d, 2026-05-01."
)
@click.option("--sort", metavar="COLUMN", help="Sort by this column, smallest first; with -COLUMN, largest first.")
@click.option("--columns", metavar="NAME,…", help="Columns to list, among those that --json prints.")
@click.option("--csv", "as_csv", is_flag=True, help="Print all columns as CSV.")
@runs_dir_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    labels: tuple[str, ...],
    limit: int,
    since: datetime | None,
    sort: str | None,
    columns: str | None,
    as_csv: bool,
    runs_dir: str | None,
    as_json: bool,
    **equal: Any,
) -> None:
    """List runs, newest first; or show, cancel, delete, or reindex them."""
    if server_of(ctx) is None:
        from mleredux._core.store import RunStore

        ctx.obj = RunStore(runs_dir)  # for commands that run only on this machine, including those of plugins
    if ctx.invoked_subcommand is not None:
        return
    there = backend(ctx, runs_dir=runs_dir)
    filters = {**equal, "label": tuple(f"{key}:{value}" for key, value in read_labels(labels).items())}
    rows, more = there.runs(filters, limit if not (since or sort) else _ALL)
    if since is not None:
        rows = [row for row in rows if row.get("created_at") and datetime.fromisoformat(row["created_at"]) >= since]
    if sort is not None:
        rows = sort_rows(rows, sort)
    if since or sort:
        rows, more = rows[:limit], f"{len(rows) - limit} more" if len(rows) > limit else None
    if as_json:
        print_json(rows)
    elif as_csv:
        _print_csv(rows)
    elif not rows:
        click.echo(f"There are no {'such ' if any(filters.values()) else ''}runs {there.place}.")
    else:
        whose = ("user",) if len({row.get("user") for row in rows}) > 1 else ()
        print_runs(rows, tuple(columns.split(",")) if columns else None, whose)
        if more is not None:
            click.echo(f"… and {more} (--limit)")
        if damaged := [row["id"] for row in rows if row["status"] == "damaged"]:
            few = f"{len(damaged)} of them can't be read; see why: `mleredux runs show {shlex.quote(damaged[0])}`"
            click.echo(safe(f"{few}, or delete them with `mleredux runs delete`."), err=True)


def print_runs(rows: list[dict[str, Any]], columns: tuple[str, ...] | None = None, more: tuple[str, ...] = ()) -> None:
    """Print runs so that the important columns fit the terminal; ids and hashes are shortened first.

    Args:
        rows: The rows.
        columns: The columns that the user requested; None: as many of `COLUMNS` as fit.
        more: The number of runs not listed, in words.
    """
    shown = [{**row, **_in_words(row)} for row in rows]
    if columns is not None:
        _check_columns(columns, shown, "--columns")
        print_table(shown, columns, least=LEAST)
        return
    wanted = [name for name in COLUMNS if name not in _OPTIONAL or any(row[name] not in (None, "") for row in shown)]
    room = shutil.get_terminal_size((120, 24)).columns
    if _width(shown, wanted) > room:  # a run can be named by the end of its id
        shown = [{**row, "id": row["id"].rpartition("-")[2]} for row in shown]
    if _width(shown, wanted) > room:
        shown = [{**row, "agent": row["agent"] and row["agent"].partition("@")[0]} for row in shown]
    marked = any(row["verdict"] not in _PLAIN_VERDICTS for row in shown)
    for name in _YIELDING[marked:] if room < _NARROW else ():
        if _width(shown, wanted, LEAST) <= room:
            break
        wanted = [column for column in wanted if column != name]
    print_table(shown, (*wanted, *more), least=LEAST)


def _width(rows: list[dict[str, Any]], columns: list[str], most: Mapping[str, int] = MappingProxyType({})) -> int:
    widths = [max(len(name), *(len(cell(row[name])) for row in rows)) for name in columns]
    return sum(min(width, most.get(name, width)) + 2 for name, width in zip(columns, widths, strict=True)) - 2


def sort_rows(rows: list[dict[str, Any]], column: str) -> list[dict[str, Any]]:
    """Sort rows by a column, with those without a value last."""
    name = {"time": "seconds", "cost": "cost_usd", "percent": "percentile"}.get(column.lstrip("-"), column.lstrip("-"))
    _check_columns([name], rows, "--sort")
    has = [row for row in rows if row[name] is not None]
    has.sort(key=lambda row: row[name], reverse=column.startswith("-"))
    return [*has, *(row for row in rows if row[name] is None)]


def _check_columns(names: Iterable[str], rows: list[dict[str, Any]], option: str) -> None:
    if unknown := [name for name in names if rows and name not in rows[0]]:
        known = ", ".join(sorted(rows[0]))
        raise click.BadParameter(f"There is no column {unknown[0]!r}. The columns are: {known}.", param_hint=option)


def _in_words(row: dict[str, Any]) -> dict[str, Any]:
    percentile, seconds, cost = (row.get(name) for name in ("percentile", "seconds", "cost_usd"))
    paused = row.get("paused_seconds") or 0.0
    return {
        "agent": short_reference(row["agent"]) if row.get("agent") else None,
        "percent": None if percentile is None else f"{percentile:.0f} %",
        "time": None if seconds is None else duration(seconds),
        "working": duration(seconds - paused) if seconds is not None and paused else None,
        "cost": None if cost is None else f"${cost:.2f}",
        "score": None if row.get("score") is None else score(row["score"]),
        **{name: row.get(name) for name in ("seed", "medal", "verdict", "cause", "tokens")},
    }


def _print_csv(rows: list[dict[str, Any]]) -> None:
    writer = csv.DictWriter(sys.stdout, list(rows[0]) if rows else ["id"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: json.dumps(v) if isinstance(v, list | dict) else v for name, v in row.items()} for row in rows
    )


@command.command()
@click.argument("run")
@json_option
@click.pass_context
def show(ctx: click.Context, run: str, as_json: bool) -> None:
    """Show a run, given its id, part of an id, or `last`."""
    from mleredux._core.cli.run_table import print_results

    there = _backend(ctx)
    run_id = there.find(run)
    view = there.view(run_id)
    if as_json:
        print_json(view.record)
        return
    print_results([view])
    for event in there.events(run_id):
        facts = "  ".join(f"{key}={cut(str(value), 100)}" for key, value in event.data.items() if value is not None)
        click.echo(safe(f"{event.time:%H:%M:%S}  {event.type.ljust(10)}  {facts}"))
    if view.waiting_for:
        click.echo(safe(f"{view.status.capitalize()}: waiting for {view.waiting_for}"))


@command.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_context
def delete(ctx: click.Context, runs: tuple[str, ...], yes: bool) -> None:
    """Delete runs with all their files."""
    there = _backend(ctx)
    run_ids = [there.find(name) for name in runs]
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Deleting without a terminal requires --yes.")
        click.confirm(f"Delete {', '.join(run_ids)} {there.place}?", abort=True)
    for run_id in run_ids:
        there.delete(run_id)
        click.echo(f"Deleted {run_id}.")


@command.command()
@click.argument("runs", nargs=-1)
@server_option("--experiment", metavar="ID", help="All runs of this experiment that have not ended.")
@click.pass_context
def cancel(ctx: click.Context, runs: tuple[str, ...], experiment: str | None) -> None:
    """Cancel runs; their files are kept."""
    if bool(runs) == (experiment is not None):
        raise click.UsageError("Specify runs or, on a server, an experiment with --experiment.")
    for sentence in _backend(ctx).cancel(runs, experiment):
        click.echo(sentence)


@command.command()
@click.pass_obj
def reindex(store: Any) -> None:
    """Rebuild the index from the run directories."""
    click.echo(f"Indexed {counted(store.rebuild(), 'run')} in {Path(store.path) / 'index.sqlite'}.")


def _backend(ctx: click.Context) -> Backend:
    assert ctx.parent is not None
    return backend(ctx, runs_dir=ctx.parent.params["runs_dir"])
