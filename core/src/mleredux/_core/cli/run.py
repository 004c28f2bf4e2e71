"""`mleredux run`."""

from __future__ import annotations

import json
import signal
from typing import Any

import click

from mleredux._core.cli.durations import Duration, Megabytes
from mleredux._core.cli.output import data_dir_option, json_option, print_json, runs_dir_option
from mleredux._core.cli.root import catalogue

EXIT_AGENT_FAILED = 3
EXIT_ENVIRONMENT_BROKE = 4
EXIT_CANCELLED = 130
LIMITS = (
    *("time_limit", "cpus", "memory_mb", "disk_mb", "processes", "gpus", "grace"),
    *("llm_calls", "llm_tokens", "llm_cost_usd"),
)
"""Options that are limits, by their names there."""


@click.command()
@click.argument("tasks", nargs=-1, metavar="TASK...")
@click.option("--agent", "agents", multiple=True, metavar="ID", help="The agent; several give one run each.")
@click.option("--set", "sets", multiple=True, metavar="NAME", help="All tasks of a set too (starter, low, …).")
@click.option("--sandbox", metavar="ID", help="Sandbox to run in; by default the best that meets the agent's needs.")
@click.option(
    "--seed",
    "seeds",
    type=int,
    multiple=True,
    help="Given to the agent; several give one run each.  [default: 0]",
)
@click.option("--time-limit", type=Duration(), help="How long the agent may work: 90s, 30m, 2h.")
@click.option("--cpus", type=click.FloatRange(min=0, min_open=True), help="CPUs of the agent.")
@click.option("--memory", "memory_mb", type=Megabytes(), help="Memory of the agent: 512m, 4g.")
@click.option("--disk", "disk_mb", type=Megabytes(), help="Disk of the agent: 512m, 10g.")
@click.option("--processes", type=click.IntRange(min=1), help="Processes of the agent.")
@click.option("--gpus", type=click.IntRange(min=0), help="GPUs of the agent.")
@click.option("--grace", type=Duration(), help="Time between SIGTERM and SIGKILL.")
@click.option("--network", type=click.Choice(["none", "gateway", "open"]), help="What the agent may reach (docker).")
@click.option("--llm-calls", type=click.IntRange(min=0), help="Calls of language models through the gateway.")
@click.option("--llm-tokens", type=click.IntRange(min=0), help="Tokens of these calls, read and written.")
@click.option("--llm-cost", "llm_cost_usd", type=click.FloatRange(min=0), metavar="USD", help="Cost of these calls.")
@click.option("-o", "--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the agent.")
@click.option("--obfuscated", is_flag=True, help="Give the description without the competition's name and story.")
@click.option("--context", type=click.File(encoding="utf-8"), help="A text file to add to what the agent is told.")
@click.option("--base-image", metavar="IMAGE", help="Base of the agent's image (also MLEREDUX_BASE_IMAGE).")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Runs at once, as slots allow.")
@click.option("--follow", is_flag=True, help="Show the agent's log while it works.")
@click.option("--resume", metavar="RUN", help="Go on with an interrupted run, by its id (or `last`).")
@runs_dir_option
@data_dir_option
@json_option
@click.pass_context
def command(ctx: click.Context, /, **asked: Any) -> None:
    """Let an agent work on tasks, grade what it leaves, keep everything.

    \b
    Exit codes: 0 all runs done · 1 error · 2 usage · 3 an agent failed or ran out of time
                4 the environment or a task broke · 130 cancelled
    """
    from mleredux._core.cli.progress import RunProgress
    from mleredux._core.cli.summary import Shown, closing_table
    from mleredux._core.data import DataStore
    from mleredux._core.pipeline import Pipeline
    from mleredux._core.store import RunStore

    found = catalogue(ctx)
    store = RunStore(asked["runs_dir"])
    with RunProgress(follow=asked["follow"], quiet=asked["as_json"]) as progress:
        data = DataStore(asked["data_dir"])
        if asked["resume"]:
            if asked["tasks"] or asked["sets"]:
                raise click.UsageError("--resume goes on with one run; name no tasks beside it.")
            run = store.get(asked["resume"])
            data = DataStore(run.spec.data_dir)
            pipeline = Pipeline(store, found, data, 1, asked["base_image"], progress.say)
            pipeline.check_resumable(run)
            runs = [run]
        else:
            planned = _plan(ctx, asked)
            runs = [store.create(**fields, data_dir=str(data.path.absolute())) for fields in planned]
            pipeline = Pipeline(store, found, data, asked["jobs"], asked["base_image"], progress.say)
        progress.start(runs)
        signal.signal(signal.SIGTERM, lambda *_: pipeline.cancel())
        runs = pipeline.execute(runs)
    records = [run.record() for run in runs]
    if asked["as_json"]:
        print_json(records[0] if len(records) == 1 and len(asked["tasks"]) < 2 and not asked["sets"] else records)
    else:
        closing_table([Shown.of(run) for run in runs])
    ctx.exit(max(exit_code(record) for record in records))


def _plan(ctx: click.Context, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """One set of fields for each run, all checked before the first run is made."""
    from mleredux._core.api import plan

    found = catalogue(ctx)
    if not asked["tasks"] and not asked["sets"]:
        raise click.UsageError("Name a task, like `mleredux run digits --agent baseline`, or a set with --set.")
    if not asked["agents"]:
        known = ", ".join(found.entries("agents")) or "none is installed"
        raise click.UsageError(f"Name an agent with --agent; there are: {known}.")
    limits = {name: asked[name] for name in LIMITS if asked[name] is not None}
    context = asked["context"].read() if asked["context"] else None
    return [
        {
            **plan(
                found,
                task,
                agent,
                sandbox=asked["sandbox"],
                seed=seed,
                limits=limits,
                options=read_options(asked["options"]),
                network=asked["network"],
            ),
            "obfuscated": asked["obfuscated"],
            "context": context,
        }
        for task in found.task_names(asked["tasks"], asked["sets"])
        for agent in asked["agents"]
        for seed in asked["seeds"] or (0,)
    ]


def read_options(pairs: tuple[str, ...]) -> dict[str, Any]:
    """`key=value` pairs; values are read as JSON where they are."""
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{pair!r} is not of the form KEY=VALUE.", param_hint="--option")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return options


def exit_code(record: dict[str, Any]) -> int:
    """What `mleredux run` exits with for one run's record."""
    from mleredux._core.models import CAUSES, Cause

    if record["cause"] is None:
        return 0
    cause = Cause(record["cause"])
    if cause is Cause.CANCELLED:
        return EXIT_CANCELLED
    return EXIT_AGENT_FAILED if CAUSES[cause].counts else EXIT_ENVIRONMENT_BROKE
