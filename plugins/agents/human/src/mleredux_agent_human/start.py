"""`mleredux human start`."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from mleredux import MlereduxError, Run
from mleredux.plugin.command import (
    Duration,
    Megabytes,
    RunRequest,
    backend,
    data_dir_option,
    json_option,
    print_json,
    print_results,
    read_options,
    runs_dir_option,
)
from mleredux.plugin.experiment import Request
from mleredux_agentkit.wire import NoSession, request

from mleredux_agent_human.jupyter_address import open_jupyter

_POLL = 0.2
_WORKER_SECONDS = 20
_LIBRARIES = {"libraries": "tabular"}
"""Default contents of a person's image."""
_BANNER = """\
{task}: {time}
You are in the folder of your run; everything in it is kept. Read instructions.md
and description.md in $MLEREDUX_TASK_DIR; the data is in $MLEREDUX_DATA_DIR.
  submit [FILE]  check a submission and keep it; the last one counts
  clock          show the remaining time
  finish         end the session, as `exit` and Ctrl-D do; {feedback}
If this terminal is closed, nothing is lost; return with
  mleredux human start --attach {run}
"""


class Feedback(click.ParamType[Any]):
    """Converts `now`, `later`, or a time in ISO 8601 to whether, and for how long, to hold back the grade."""

    name = "now|later|TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the text `now` or `later`, or a time with its zone, by default this machine's."""
        if value in ("now", "later") or isinstance(value, datetime):
            return value
        try:
            end = datetime.fromisoformat(value).astimezone()
        except ValueError:
            self.fail(f"{value!r} is neither `now`, `later`, nor a time like 2026-06-30T18:00.", param, ctx)
        if end <= datetime.now(UTC):
            self.fail(f"{value} is in the past; use `now`.", param, ctx)
        return end


@click.command("start")
@click.argument("task", required=False)
@click.option("--name", metavar="NAME", help="Your name; the agent of the run is `human:NAME`.")
@click.option("--sandbox", metavar="ID", help="Sandbox to work in.  [default: process]")
@click.option("--time-limit", type=Duration(), help="Time limit: 90s, 30m, 2h.  [default: 2h]")
@click.option("--cpus", type=click.FloatRange(min=0, min_open=True), help="CPUs.")
@click.option("--memory", "memory_mb", type=Megabytes(16), help="Memory: 512m, 4g.")
@click.option("--disk", "disk_mb", type=Megabytes(1), help="Disk space: 512m, 10g.")
@click.option("-O", "--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the agent `human`.")
@click.option("--jupyter", is_flag=True, help="Also open JupyterLab in the sandbox, on this machine's loopback.")
@click.option("--feedback", type=Feedback(), default="now", show_default=True, help="When to grade the run.")
@click.option("--detach", "-d", is_flag=True, help="Open the workspace and return; no shell in this terminal.")
@click.option("--attach", metavar="RUN", help="Return to the workspace of this run (or `last`).")
@runs_dir_option
@data_dir_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, task: str | None, attach: str | None, detach: bool, as_json: bool, **choices: Any
) -> None:
    """Work on TASK yourself, in a shell with the same view, time limit and report as an agent.

    With --jupyter, the address of a JupyterLab is also printed; its cells and their output are steps of the rollout.
    The clock starts when the workspace is open. `submit`, `clock` and `finish` work in its shell; `mleredux human
    submit` and `mleredux human finish` do the same from its folder.
    """
    if (task is None) == (attach is None):
        raise click.UsageError("Specify a task, e.g. `mleredux human start digits`, or a run with --attach.")
    there = backend(ctx, runs_dir=choices["runs_dir"], data_dir=choices["data_dir"])
    if attach is not None:
        run = Run(Path(there.location(there.find(attach))))
        if _over(run):
            raise MlereduxError(f"The session of {run.id} has ended.", hint=f"See `mleredux runs show {run.id}`.")
    else:
        batch = there.create(_request(str(task), choices))
        run = Run(Path(batch.records[0]["path"]))
        if choices["feedback"] != "now":
            run.hold(None if choices["feedback"] == "later" else choices["feedback"])
    time_left = _open(ctx, run)
    jupyter = open_jupyter(run)
    if detach or as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        if as_json:
            print_json({**run.record(), "jupyter": jupyter})
        else:
            click.echo(f"{run.id}: {time_left}\nWorkspace: {run.output_dir}\nTask: {run.path / 'task'}")
            if jupyter:
                click.echo(f"Jupyter: {jupyter}")
            click.echo(f"Attach a shell: mleredux human start --attach {run.id}")
        return
    from mleredux_agent_human.terminal import attach as attach_terminal

    click.echo(_BANNER.format(task=run.spec.task, time=time_left, feedback=_when(run), run=run.id))
    if jupyter:
        click.echo(f"Jupyter: {jupyter}")
    with contextlib.suppress(NoSession):
        attach_terminal(run.output_dir)
    follow(there, run)


def _request(task: str, choices: dict[str, Any]) -> RunRequest:
    agent = f"human:{choices['name']}" if choices["name"] else "human"
    here = choices["sandbox"] in (None, "process")
    if choices["jupyter"] and here and find_spec("jupyterlab") is None:
        raise MlereduxError("JupyterLab is not installed.", hint='`pip install "mleredux-agent-human[jupyter]"`')
    names = ("time_limit", "cpus", "memory_mb", "disk_mb")
    limits = {name: choices[name] for name in names if choices[name] is not None}
    options = {
        **({} if here else _LIBRARIES),
        **({"jupyter": True} if choices["jupyter"] else {}),
        **read_options(choices["options"]),
    }
    return RunRequest(runs=Request.single(task, agent, sandbox=choices["sandbox"], limits=limits, options=options))


def _open(ctx: click.Context, run: Run) -> str:
    """Execute the run in a separate process, wait for the session, and return the remaining time.

    Raises:
        MlereduxError: The run failed before the session started.
    """
    if not run.alive:
        _start_worker(ctx, run)
    started, state = time.monotonic(), ""
    while True:
        try:
            return str(request(run.output_dir, "clock")["message"])
        except NoSession:
            pass
        if _over(run):
            raise MlereduxError(
                f"The workspace could not be opened: {run.message or 'the session has ended.'}",
                hint=f"See `mleredux runs show {run.id}`.",
            )
        if not run.alive and time.monotonic() - started > _WORKER_SECONDS:
            lines = _worker_log(run).read_text(errors="replace").strip().splitlines()
            raise MlereduxError(
                f"The workspace could not be opened: {lines[-1] if lines else 'its process ended.'}",
                hint=f"Try again with `mleredux human start --attach {run.id}`.",
            )
        if str(run.state) != state:
            state = str(run.state)
            click.echo(f"{state} …", err=True)
        time.sleep(_POLL)


def _over(run: Run) -> bool:
    """Return whether the person's part of the run is over."""
    return str(run.state) == "grading" or run.state.final


def _start_worker(ctx: click.Context, run: Run) -> None:
    """Start `mleredux run --resume`, which outlives this terminal."""
    params = ctx.find_root().params
    plugins = [word for name in params.get("load") or () for word in ("--plugin", name)]
    plugins += [word for name in params.get("block") or () for word in ("--block", name)]
    command = ["run", "--resume", str(run.path.resolve()), "--runs-dir", str(run.path.parent.resolve())]
    with _worker_log(run).open("ab") as log:
        subprocess.Popen(
            [sys.executable, "-m", "mleredux", *plugins, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _worker_log(run: Run) -> Path:
    return run.path / ".worker.log"


def follow(there: Any, run: Run) -> None:
    """Wait for the grade after a session and print it, or print when it will be available."""
    try:
        request(run.output_dir, "clock")
    except NoSession:
        pass
    else:
        click.echo(f"Detached; the clock keeps running. Return with `mleredux human start --attach {run.id}`.")
        return
    while run.alive and not run.state.final:
        time.sleep(_POLL)
    if run.held:
        click.echo(f"Your work is saved in {run.path}. {_when(run).capitalize()}.")
    else:
        print_results([there.view(run.id)])


def _when(run: Run) -> str:
    end = run.hold_end
    if end is None:
        return "the submission is graded at once"
    if end.year == datetime.max.year:
        return f"it will be graded later, by `mleredux runs release-grades {run.id}`"
    return f"it is graded by `mleredux runs release-grades` after {end:%Y-%m-%d %H:%M %Z}"
