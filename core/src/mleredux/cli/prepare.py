"""`mleredux prepare`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from mleredux.cli.output import data_dir_option, json_option, print_json
from mleredux.cli.root import catalogue
from mleredux.errors import MlereduxError


@click.command()
@click.argument("tasks", nargs=-1, metavar="TASK...")
@click.option("--set", "sets", multiple=True, metavar="NAME", help="All tasks of a set too (starter, low, …).")
@click.option("--all", "everything", is_flag=True, help="All tasks.")
@click.option(
    "--from", "source", type=click.Path(path_type=Path), help="A folder or zip with the raw data of the task."
)
@click.option("--keep-raw", is_flag=True, help="Keep raw data that were fetched or unpacked.")
@click.option("--force", is_flag=True, help="Prepare again what is prepared.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Tasks at once.")
@data_dir_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    tasks: tuple[str, ...],
    sets: tuple[str, ...],
    everything: bool,
    source: Path | None,
    keep_raw: bool,
    force: bool,
    jobs: int,
    data_dir: str | None,
    as_json: bool,
) -> None:
    """Get tasks' raw data and split them into public files and answers. What is prepared already is left as it is."""
    from mleredux.data import DataStore
    from mleredux.stages.prepare import prepare

    found, store = catalogue(ctx), DataStore(data_dir)
    names = found.task_names(tasks, (*sets, *(("all",) if everything else ())))
    if not names:
        raise click.UsageError("Name a task, like `mleredux prepare digits`, a set with --set, or --all.")
    if source is not None and len(names) > 1:
        raise click.UsageError("--from holds the raw data of one task; name one.")
    chosen = [found.task(name) for name in names]
    found.hook("mleredux_prepare")

    def one(number: int) -> dict[str, Any]:
        task = chosen[number]

        def say(message: str) -> None:
            if not as_json:
                click.echo(f"{task.id}: {message}", err=True)

        try:
            done = prepare(task, found, store, force=force, source=source, keep_raw=keep_raw, progress=say)
        except MlereduxError as error:
            if ctx.find_root().params.get("debug"):
                raise
            click.echo(f"Error: {error}", err=True)
            return {"task": task.id, "ok": False, "message": str(error)}
        say(f"ready in {done.public.parent}")
        return {
            "task": task.id,
            "version": task.version,
            "ok": True,
            "public": str(done.public),
            "private": str(done.private),
            "digest": done.digest,
        }

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        rows = list(pool.map(one, range(len(chosen))))
    if as_json:
        print_json(rows)
    ctx.exit(0 if all(row["ok"] for row in rows) else 1)
