"""`mleredux prepare`."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mleredux._core.cli.context import catalogue
from mleredux._core.cli.options import data_dir_option, json_option
from mleredux._core.cli.output import echo, print_json
from mleredux.errors import Cancelled, MlereduxError, NotApplicable
from mleredux.models.formats import counted

if TYPE_CHECKING:
    from mleredux._core.cli.prepare_progress import PreparingDisplay
    from mleredux._core.data.datastore import DataStore
    from mleredux._core.data.progress import Step
    from mleredux.models import Task

_GRACE = 3.0
"""Seconds for a clean shutdown of tasks when the command is stopped."""


@click.command()
@click.argument("tasks", nargs=-1, metavar="TASK...")
@click.option(
    "--set", "sets", multiple=True, metavar="NAME", help="Include all tasks of this set (starter, techniques@wine, …)."
)
@click.option("--all", "everything", is_flag=True, help="All tasks.")
@click.option(
    "--from", "source", type=click.Path(path_type=Path), help="A folder or zip file with the raw data of the task."
)
@click.option("--leaderboard", is_flag=True, help="Also fetch the current leaderboard and use it for percentiles.")
@click.option("--keep-raw", is_flag=True, help="Keep downloaded and unpacked raw data.")
@click.option("--force", is_flag=True, help="Prepare tasks even if they are already prepared.")
@click.option("--ignore-space", is_flag=True, help="Start even if free disk space seems insufficient.")
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Maximum number of concurrent tasks."
)
@data_dir_option
@json_option
@click.pass_context
def command(ctx: click.Context, /, **parameters: Any) -> None:
    """Download the raw data of tasks and split it into public files and answers.

    Tasks that are already prepared are not prepared again; only their checksums are verified. An interrupted
    preparation is resumed.

    \b
    Exit codes: 0 all tasks are prepared · 1 error · 2 usage · 130 stopped
    """
    from mleredux._core.cli.prepare_progress import PreparingDisplay
    from mleredux._core.data.datastore import DataStore

    plugins, store = catalogue(ctx), DataStore(parameters["data_dir"])
    refused: dict[str, str] = {}
    sets = (*parameters["sets"], *(("all",) if parameters["everything"] else ()))
    names = plugins.task_names(parameters["tasks"], sets, refused)
    if not names:
        raise click.UsageError("Specify a task, e.g. `mleredux prepare digits`, a set with --set, or --all.")
    if parameters["source"] is not None and len(names) > 1:
        raise click.UsageError("--from is the raw data of one task; specify exactly one task.")
    tasks = [plugins.task(name) for name in names]
    plugins.hook("mleredux_prepare")
    if len(tasks) > 1 and not parameters["ignore_space"]:
        from mleredux._core.data.space import check

        missing = [task for task in tasks if parameters["force"] or not (store.home(task) / "prepared").is_dir()]
        check(store, missing, jobs=parameters["jobs"])
    with PreparingDisplay(quiet=parameters["as_json"]) as display:
        rows = [row for row in _prepare_all(ctx, tasks, store, parameters, display) if row]
    for name, reason in refused.items():
        echo(f"{name}: skipped. {reason}", err=True)
    if parameters["as_json"]:
        print_json(rows)
    elif len(rows) > 1:
        failed = [row["task"] for row in rows if not row["ok"]]
        click.echo(f"{len(rows) - len(failed)} of {counted(len(rows), 'task')} prepared.", err=True)
        if failed:
            click.echo(f"Not prepared: {', '.join(failed)}.", err=True)
    ctx.exit(0 if all(row["ok"] for row in rows) else 1)


def _prepare_all(
    ctx: click.Context, tasks: list[Task], store: DataStore, parameters: dict[str, Any], display: PreparingDisplay
) -> list[dict[str, Any]]:
    stopped = threading.Event()
    prepare_task = partial(_prepare_one, ctx, store, parameters, display, stopped)
    if parameters["jobs"] == 1 or len(tasks) == 1:
        return [prepare_task(task) for task in tasks]
    with ThreadPoolExecutor(max_workers=parameters["jobs"]) as pool:
        futures = [pool.submit(prepare_task, task) for task in tasks]
        try:
            return [future.result() for future in futures]
        except BaseException as error:
            stopped.set()  # workers check this when they next report progress
            pool.shutdown(wait=False, cancel_futures=True)
            if wait(futures, timeout=_GRACE).not_done and isinstance(error, KeyboardInterrupt):
                display.stop()
                click.echo("Stopped.", err=True)
                os._exit(130)  # safe at any point: a partial preparation is never accepted as complete
            raise


def _prepare_one(
    ctx: click.Context,
    store: DataStore,
    parameters: dict[str, Any],
    display: PreparingDisplay,
    stopped: threading.Event,
    task: Task,
) -> dict[str, Any]:
    from mleredux._core.data.checksums import ChecksumMismatch
    from mleredux._core.data.progress import listening
    from mleredux._core.stages.prepare import prepare, refresh_leaderboard

    def show_step(step: Step) -> None:
        if stopped.is_set():
            raise Cancelled("Stopped.")
        display.show(task.id, step)

    row: dict[str, Any] = {"task": task.id, "ok": False}
    try:
        with listening(show_step):
            done = prepare(
                task,
                catalogue(ctx),
                store,
                force=parameters["force"],
                source=parameters["source"],
                keep_raw=parameters["keep_raw"],
                check_space=not parameters["ignore_space"],
                progress=partial(display.note, task.id),
            )
            if parameters["leaderboard"]:
                row["leaderboard"] = str(refresh_leaderboard(task, store))
    except Cancelled:
        raise
    except MlereduxError as error:
        if isinstance(error, NotApplicable) and task.id not in parameters["tasks"]:
            display.end(task.id, f"skipped. {error}", ok=False)
            return {}
        if ctx.find_root().params.get("debug"):
            raise
        display.end(task.id, f"Error: {error}", ok=False)
        row["message"] = str(error)
        if isinstance(error, ChecksumMismatch):
            row["differences"] = list(map(asdict, error.differences))
        return row
    except BaseException:
        display.end(task.id, "stopped", ok=False)
        raise
    display.end(task.id, f"ready in {done.public.parent}")
    if done.differences:
        listed = "; ".join(map(str, done.differences))
        display.note(task.id, f"Warning: these are not the published files, so scores can't be compared: {listed}")
    if not done.neutral:
        display.note(task.id, "Warning: the order of inodes may reveal classes; prepare the task again with --force.")
    return {
        **row,
        "version": task.version,
        "ok": True,
        "public": str(done.public),
        "private": str(done.private),
        "digest": done.digest,
        "differences": [asdict(difference) for difference in done.differences],
    }
