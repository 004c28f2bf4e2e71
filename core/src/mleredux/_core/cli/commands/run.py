"""`mleredux run`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast, get_args

import click

from mleredux._core.cli.backend import Backend, Batch, RunRequest
from mleredux._core.cli.consent import OPTIONS, grant_options, granted
from mleredux._core.cli.context import backend, catalogue
from mleredux._core.cli.exit_codes import EXIT_CANCELLED, exit_code
from mleredux._core.cli.options import (
    Duration,
    Megabytes,
    Pair,
    data_dir_option,
    json_option,
    local_option,
    runs_dir_option,
    server_option,
    store_option,
)
from mleredux._core.cli.output import print_json
from mleredux.models.units import MAX_SEED

if TYPE_CHECKING:
    from mleredux._core.cli.local import LocalBackend

_LIMITS = (
    *("time_limit", "cpus", "memory_mb", "disk_mb", "processes", "gpus", "grace"),
    *("llm_calls", "llm_tokens", "llm_cost_usd", "on_budget", "dev_scores"),
)
"""Options that are limits, by their names in `Limits`."""
_ARM = ("sandbox", "network", "obfuscated", "verify")
"""Options that are fields of each agent's arm."""
_EXECUTION = (
    *("base_image", "executor", "store", "jobs", "source", "watch", "replay", "last_failed"),
    *("project", "priority", "preemptible", "name", "secrets"),
)
"""Options that are passed to the backend unchanged."""
_WATCHING = ("follow", "as_json", "cancel_on_interrupt", "junit_xml", "durations")
"""Options that determine what is shown about the runs."""


def _causes() -> tuple[str, ...]:
    from mleredux.models.agent import RetriedCause

    return get_args(RetriedCause)


_TYPES: dict[str, click.ParamType[Any]] = {
    "duration": Duration(),
    "memory": Megabytes(16),
    "disk": Megabytes(1),
    "retries": Pair(_causes, click.IntRange(0, 100)),
    "seed": click.IntRange(0, MAX_SEED),
    "integer": click.IntRange(min=0),
    "positive": click.IntRange(min=1),
    "cpus": click.FloatRange(min=0, min_open=True),
    "cost": click.FloatRange(min=0),
    "rows": click.IntRange(2, 10**9 - 1),
    "priority": click.IntRange(-100, 100),
    "text": click.File(encoding="utf-8"),
    "path": click.Path(path_type=Path),
    "file": click.Path(path_type=Path, dir_okay=False),
}
"""Types of options, by their names in `run_options.json`; a list there contains the choices."""
_SHARED = {"grant": grant_options, "store": store_option}
_PLACES = {"here": local_option, "server": server_option}


def _own_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `run_options.json`, in its order."""
    for facts in reversed(json.loads(Path(__file__).with_name("run_options.json").read_text(encoding="utf-8"))):
        if "shared" in facts:
            command = _SHARED[facts["shared"]](command)
            continue
        kind = facts.pop("type", None)
        facts["type"] = click.Choice(kind) if isinstance(kind, list) else _TYPES.get(kind)
        option: Callable[..., Any] = _PLACES.get(facts.pop("place", ""), click.option)
        command = option(*facts.pop("names"), **facts)(command)
    return command


@click.command()
@click.argument("tasks", nargs=-1, metavar="TASK...")
@_own_options
@runs_dir_option
@data_dir_option
@json_option
@click.pass_context
def command(ctx: click.Context, /, **parameters: Any) -> None:
    """Run agents on tasks, grade their submissions, store all artifacts.

    With --server, Ctrl-C stops waiting; the runs continue.

    \b
    Exit codes: 0 all runs done · 1 error · 2 usage · 3 an agent failed, ran out of time or had no valid submission
                4 the environment or a task failed · 130 cancelled, or stopped waiting
    """
    from mleredux._core.cli.run_table import write_junit

    if parameters["detach"] and parameters["follow"]:
        raise click.UsageError("--detach excludes --follow; follow a run with `mleredux logs RUN --follow`.")
    if not (parameters["tasks"] or parameters["sets"] or parameters["resume"]):
        raise click.UsageError("Specify a task, e.g. `mleredux run digits --agent baseline`, or a set with --set.")
    if parameters["store"] and not parameters["executor"]:
        raise click.UsageError("--store requires --executor.")
    if parameters["watch"] and (parameters["as_json"] or parameters["resume"]):
        raise click.UsageError("--watch shows runs until Ctrl-C; it excludes --json and --resume.")
    there = backend(ctx, runs_dir=parameters["runs_dir"], data_dir=parameters["data_dir"])
    if parameters["resume"] is not None:
        if parameters["tasks"] or parameters["sets"]:
            raise click.UsageError("--resume continues one run; omit the tasks.")
        how = (parameters[name] for name in ("resume", "base_image", "executor", "store"))
        batch = cast("LocalBackend", there).resume(*how)
    else:
        request = _request(ctx, parameters)
        if parameters["watch"]:
            watch = catalogue(ctx).get("commands", "run watch")
            ctx.invoke(watch, there=there, request=request, exit_code=exit_code, follow=parameters["follow"])
        if parameters["junit_xml"]:  # a file that can't be written is refused before the runs
            write_junit(parameters["junit_xml"], (), ())
        batch = there.create(request)
        batch.exit_first = parameters["exit_first"]
    several = len(batch.runs) > 1 or len(parameters["tasks"]) > 1 or bool(parameters["sets"])
    if parameters["detach"]:
        if parameters["as_json"]:
            print_json(batch.records if several else batch.records[0])
        else:
            click.echo("\n".join(record["id"] for record in batch.records))
            click.echo(batch.later, err=True)
        return
    if batch.note and not parameters["as_json"]:
        click.echo(batch.note, err=True)
    follow_runs(ctx, there, batch, several=several, **{name: parameters[name] for name in _WATCHING})


def _request(ctx: click.Context, parameters: dict[str, Any]) -> RunRequest:
    from mleredux.models.request import SET, Request

    tasks = (*parameters["tasks"], *(f"{SET}{name}" for name in parameters["sets"]))
    if parameters["words"]:
        from mleredux._core.planning.selection import select_names

        tasks = select_names(catalogue(ctx).task_names(parameters["tasks"], parameters["sets"]), parameters["words"])
    rows, dev_scores = parameters["debug_sample"], parameters["dev_scores"]
    if rows is not None and dev_scores is not None:
        raise click.UsageError("--debug-sample and --dev-score can't be combined; use one of them.")
    if rows is not None or dev_scores is not None:
        from mleredux._core.data.debug_sample import variant_name

        names = tasks if parameters["words"] else catalogue(ctx).task_names(parameters["tasks"], parameters["sets"])
        variant = "dev" if rows is None else f"debug-{rows}"
        tasks = tuple(name if name.endswith("+dev") else variant_name(name, variant) for name in names)
    return RunRequest(
        runs=Request.matrix(
            tasks,
            parameters["agents"],
            parameters["seeds"],
            **{name: parameters[name] for name in _ARM},
            limits={
                **{name: parameters[name] for name in _LIMITS if parameters[name] is not None},
                **({"retries": read_labels(parameters["retries"])} if parameters["retries"] else {}),
            },
            options=read_options(parameters["options"]),
            grants=granted(**{name: parameters[name] for name in OPTIONS}),
            context=parameters["context"].read() if parameters["context"] else None,
        ),
        **{name: parameters[name] for name in _EXECUTION},
        labels=read_labels(parameters["labels"]),
    )


def follow_runs(
    ctx: click.Context,
    there: Backend,
    batch: Batch,
    *,
    several: bool,
    follow: bool,
    as_json: bool,
    cancel_on_interrupt: bool = False,
    junit_xml: Path | None = None,
    durations: int | None = None,
) -> NoReturn:
    """Show runs until they have ended, print their results, and exit with the matching code.

    Args:
        ctx: The context of the command.
        there: The backend of the runs.
        batch: The runs.
        several: Whether the JSON output is a list.
        junit_xml: A file to write results to, for CI systems.
        durations: The number of slowest stages to list; 0 means all of them.
    """
    from mleredux._core.cli.run_progress import Progress
    from mleredux._core.cli.run_table import print_durations, print_results, write_junit

    with Progress(follow=follow, quiet=as_json) as progress:
        ended = there.finish(batch, progress, cancel_on_interrupt=cancel_on_interrupt)
    if ended is None:
        click.echo(f"Stopped waiting; the runs continue. {batch.later}", err=True)
        ctx.exit(EXIT_CANCELLED)
    records = [view.record for view in ended]
    codes = [exit_code(record) for record in records]
    print_json(records if several else records[0]) if as_json else print_results(ended)
    if junit_xml is not None:
        write_junit(junit_xml, ended, codes)
    if durations is not None:
        print_durations(ended, there.events, durations)
    failed = [code for code in codes if code not in (0, EXIT_CANCELLED)] if batch.exit_first else []
    if failed and EXIT_CANCELLED in codes:
        click.echo("Stopped after a failure; --last-failed repeats the runs that failed or were cancelled.", err=True)
    ctx.exit(max(failed or codes))


def read_options(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Parse `key=value` pairs; values that are valid JSON are parsed as JSON."""
    from mleredux.models.base import FieldTwice, read_json

    options: dict[str, Any] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        try:
            options[key] = read_json(value)
        except FieldTwice as error:
            raise click.BadParameter(f"In {pair!r}, {error}.", param_hint="'--option'") from None
        except (ValueError, RecursionError):
            options[key] = value
    return options


def read_labels(pairs: tuple[str, ...]) -> dict[str, str]:
    """Parse `key=value` pairs."""
    return {pair.partition("=")[0]: pair.partition("=")[2] for pair in pairs}
