"""`mleredux bisect`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click
from mleredux.errors import NotFound
from mleredux.plugin.command import (
    Duration,
    catalogue,
    data_dir_option,
    json_option,
    print_json,
    read_options,
    runs_dir_option,
)


@click.command("bisect")
@click.argument("agent")
@click.argument("good")
@click.argument("bad")
@click.option("--task", "tasks", multiple=True, required=True, metavar="ID", help="A task to run; can be repeated.")
@click.option("--measure", "chosen", default="score", show_default=True, help="The measure to compare, task by task.")
@click.option("--alpha", type=click.FloatRange(0.0001, 0.5), default=0.05, show_default=True, help="Error probability.")
@click.option(
    "--seeds", "most", type=click.IntRange(2, 1000), default=8, show_default=True, help="Maximum number of seeds."
)
@click.option("--sandbox", metavar="ID", help="Sandbox to run in.")
@click.option("--time-limit", type=Duration(), help="Time limit for the agent, such as 90s, 30m or 2h.")
@click.option("-O", "--option", "options", multiple=True, metavar="KEY=VALUE", help="Set an option of the agent.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Concurrent runs.")
@runs_dir_option
@data_dir_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    agent: str,
    good: str,
    bad: str,
    tasks: tuple[str, ...],
    most: int,
    sandbox: str | None,
    time_limit: float | None,
    options: tuple[str, ...],
    as_json: bool,
    **search: Any,
) -> None:
    """Find the commit of a repository agent (repo:URL) that changed its score between two commits.

    Each step runs one commit, seed by seed, until a sequential test assigns it to GOOD or BAD. Runs are kept as an
    experiment, so the command resumes after an interruption.
    """
    from mleredux_experiments.execution.bisection import Bisection, commit_of

    history = catalogue(ctx).call_scheme("list_history", agent, good, bad)
    if history is None:
        raise NotFound(f"{agent} has no history.", hint="Use a repository, as in repo:https://host/team/agent.git.")
    if len(history) < 2:
        raise click.UsageError("GOOD and BAD are the same commit.", ctx)
    limits = {} if time_limit is None else {"time_limit": time_limit}
    arm = {"sandbox": sandbox, "limits": limits, "options": read_options(options)}
    bisection = Bisection(
        history=history,
        tasks=catalogue(ctx).task_names(tasks),
        arm={key: value for key, value in arm.items() if value},
        catalogue=catalogue(ctx),
        least=min(3, most),
        most=most,
        report=lambda text: None if as_json else click.echo(text, err=True),
        **search,
    )
    last, first = bisection.find()
    between = history.index(first) - history.index(last) - 1
    if as_json:
        steps = [asdict(step) for step in bisection.steps]
        ends = {"last_good": commit_of(last), "first_bad": commit_of(first), "undecided": between}
        print_json({**ends, "commits": len(history), "experiment": bisection.name, "steps": steps})
    elif between:
        known = f"after {commit_of(last)}, and no later than {commit_of(first)}"
        click.echo(f"The change is {known}; {between} commits in between are undecided.")
    else:
        click.echo(f"The first bad commit is {commit_of(first)}.")
