"""`mleredux experiment check|run|status|extend|retry`."""

from __future__ import annotations

import shlex
import threading
from collections import Counter
from pathlib import Path

import click
from mleredux.models.formats import counted, duration, plain, text
from mleredux.plugin.artifact import Run, RunStore
from mleredux.plugin.command import (
    EXIT_ENVIRONMENT_BROKE,
    RunRequest,
    backend,
    cancelling,
    catalogue,
    data_dir_option,
    json_option,
    print_facts,
    print_json,
    print_table,
    runs_dir_option,
    server_of,
    store_option,
)
from mleredux.plugin.experiment import MAX_SEED, Plan

from mleredux_experiments.commands.there import act_there, hours_text, run_there, show, status_there
from mleredux_experiments.execution.execution import Execution
from mleredux_experiments.execution.experiment import extend as extend_experiment
from mleredux_experiments.execution.experiment import find, start
from mleredux_experiments.execution.plan import check_plan, planned_cells, read_plan
from mleredux_experiments.results.sources import runs_below

EXIT_CANCELLED = 130
jobs_option = click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Maximum number of concurrent runs."
)
executor_option = click.option(
    "--executor", metavar="ID", help="Executor that places the runs on machines.  [default: this process executes them]"
)
seed_option = click.option(
    "--seed", "seeds", type=click.IntRange(0, MAX_SEED), multiple=True, help="A seed to add; can be repeated."
)


@click.command("check")
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--project", metavar="NAME", help="Project for the runs, on a server.")
@runs_dir_option
@json_option
@click.pass_context
def check(ctx: click.Context, plan: Path, project: str | None, runs_dir: str | None, as_json: bool) -> None:
    """Check a plan: show its matrix, time and cost estimated from past runs, and the smallest detectable difference."""
    read = read_plan(plan, catalogue(ctx))
    if server_of(ctx) is not None:
        record = backend(ctx).check(RunRequest(runs=read.request, plan=read, project=project))
    else:
        from mleredux_experiments.execution.estimate import checked

        check_plan(read, catalogue(ctx))
        record = checked(read, planned_cells(read, catalogue(ctx)), runs_below(RunStore(runs_dir).path)).document()
    if as_json:
        print_json(record)
        return
    click.echo(click.style(": ".join(filter(None, (record["name"], record["question"]))), bold=True))
    sizes = [counted(len(record[key]), key[:-1]) for key in ("arms", "tasks", "seeds")]
    click.echo(f"{' × '.join(sizes)} = {counted(record['runs'], 'run')}.\n")
    print_table(record["arms"], ("arm", "agent", "variant", "limits", "options"), ("options",))
    hours, cost = record["hours"], record["cost_usd"]
    took = f"{hours_text(hours)}, from {record['past']} past runs" if hours else None
    click.echo()
    print_facts(
        {
            "tasks": record["tasks"],
            "seeds": record["seeds"],
            "time": took or "unknown: some agents have no past runs",
            "at most": f"{duration(3600 * record['most_hours'])}, by the time limits",
            "cost": "${mean:.2f} (80 %: {low:.2f} to {high:.2f})".format(**cost) if cost else None,
            "detects": record["detects"],
            "stop": {key: text(value) for key, value in record["stop"].items() if value is not None},
        }
    )


@click.command("run")
@click.argument("plan", metavar="PLAN_OR_DIR")
@jobs_option
@executor_option
@store_option
@click.option("--project", metavar="NAME", help="Project for the runs, on a server.")
@runs_dir_option
@data_dir_option
@json_option
@click.pass_context
def run(
    ctx: click.Context,
    plan: str,
    jobs: int,
    executor: str | None,
    store: str | None,
    project: str | None,
    runs_dir: str | None,
    data_dir: str | None,
    as_json: bool,
) -> None:
    """Run or continue an experiment: a plan file, an experiment's folder or its name.

    Each cell is run once, even if the program is interrupted. The plan is frozen at the first start; changes after the
    first result are recorded as deviations.
    """
    if server_of(ctx) is not None:
        if executor is not None:
            raise click.UsageError("--executor applies only to this machine; the server places its own runs.", ctx)
        run_there(ctx, read_plan(Path(plan), catalogue(ctx)), project, as_json)
        return
    if project is not None:
        raise click.UsageError("--project needs a server; specify one with --server URL.", ctx)
    execution = find(plan, runs_dir, catalogue(ctx))
    if isinstance(execution, Plan):
        execution = start(execution, catalogue(ctx), runs_dir=runs_dir, data_dir=data_dir)
    if store is not None and executor is None:
        raise click.UsageError("--store requires --executor.", ctx)
    execution.executor, execution.object_store = executor, store
    _execute(ctx, execution, jobs, as_json)


@click.command("retry")
@click.argument("experiment", metavar="PLAN_OR_DIR")
@jobs_option
@runs_dir_option
@json_option
@click.pass_context
def retry(ctx: click.Context, experiment: str, jobs: int, runs_dir: str | None, as_json: bool) -> None:
    """Repeat runs that failed because of the environment or the task, or have no result; earlier attempts are kept."""
    if server_of(ctx) is not None:
        act_there(ctx, experiment, "retry", None, as_json)
        return
    _execute(ctx, _existing(ctx, experiment, runs_dir), jobs, as_json, broken=True)


@click.command("extend")
@click.argument("experiment", metavar="PLAN_OR_DIR")
@seed_option
@click.option("--task", "tasks", multiple=True, metavar="ID", help="A task to add, or a set as set:NAME.")
@runs_dir_option
@json_option
@click.pass_context
def extend(
    ctx: click.Context,
    experiment: str,
    seeds: tuple[int, ...],
    tasks: tuple[str, ...],
    runs_dir: str | None,
    as_json: bool,
) -> None:
    """Add seeds or tasks to an experiment; `mleredux experiment run` then executes the new runs."""
    if not (seeds or tasks):
        raise click.UsageError("Specify the seeds or tasks to add with --seed or --task.", ctx)
    if server_of(ctx) is not None:
        act_there(ctx, experiment, "extend", {"tasks": list(tasks), "seeds": list(seeds)}, as_json)
        return
    execution = _existing(ctx, experiment, runs_dir)
    words = extend_experiment(execution, tasks=tasks, seeds=seeds)
    status = execution.status()
    if as_json:
        print_json(status)
    else:
        click.echo(f"Added {' and '.join(words)}: {counted(status['total'], 'run')}, {status['ended']} of them ended.")
        click.echo(f"Continue with `mleredux experiment run {shlex.quote(experiment)}`.")


@click.command("status")
@click.argument("experiment", metavar="PLAN_OR_DIR")
@runs_dir_option
@json_option
@click.pass_context
def status(ctx: click.Context, experiment: str, runs_dir: str | None, as_json: bool) -> None:
    """Show an experiment's progress: runs by arm, time, cost, failures, deviations from its plan."""
    if server_of(ctx) is not None:
        record = status_there(ctx, experiment)
    else:
        from mleredux_experiments.execution.estimate import estimate

        execution = _existing(ctx, experiment, runs_dir)
        record = execution.status()
        rest = [(place.cell, place.plan) for place in execution.places() if place.state != "ended"]
        hours = estimate(execution.record.plan, rest, runs_below(RunStore(runs_dir).path)).hours if rest else None
        record["remaining_hours"] = {"mean": hours.mean, "low": hours.low, "high": hours.high} if hours else None
    show(record, as_json)


def _existing(ctx: click.Context, argument: str, runs_dir: str | None) -> Execution:
    opened = find(argument, runs_dir, catalogue(ctx))
    return find(opened.experiment.name, runs_dir, catalogue(ctx)) if isinstance(opened, Plan) else opened  # type: ignore[return-value]


def _execute(ctx: click.Context, execution: Execution, jobs: int, as_json: bool, *, broken: bool = False) -> None:
    """Run the cells, printing a line as each ends; Ctrl-C, SIGTERM and SIGHUP stop the experiment cleanly."""
    total, done, lock = len(execution.planned), Counter[str](), threading.Lock()
    done["ended"] = execution.status()["ended"]

    def print_end(run: Run, message: str) -> None:
        if not run.state.final or message != str(run.state):
            return
        with lock:
            done["ended"] += 1
            report = run.report
            score = f" {plain(report.score, 5)}" if report and report.score is not None else ""
            medal = f" {report.medal}" if report and report.medal else ""
            line = f"[{done['ended']}/{total}] {run.spec.arm} · {run.spec.task} · seed {run.spec.seed}: {message}"
            click.echo(f"{line}{score}{medal}", err=True)

    if not as_json:
        execution.progress = print_end
    with cancelling(execution.stop.set):
        execution.run(jobs=jobs, broken=broken)
    record = execution.status()
    show(record, as_json)
    if execution.stop.is_set():
        ctx.exit(EXIT_CANCELLED)
    ctx.exit(EXIT_ENVIRONMENT_BROKE if record["broken"] else 0)
