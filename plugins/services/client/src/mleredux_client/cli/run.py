"""`mleredux run` on a server."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, NoReturn

import click
from mleredux._core.cli import run as local
from mleredux.plugin.command import print_json

from mleredux_client.calls import create, known
from mleredux_client.cli.records import record_of, shown_of
from mleredux_client.cli.service import Service, service, service_option
from mleredux_client.cli.twins import twin

_HELP = """Let an agent work on tasks, on a server that grades and keeps everything.

Ctrl-C stops watching, not the runs.

\b
Exit codes: 0 all runs done · 1 error · 2 usage · 3 an agent failed or ran out of time
            4 the environment or a task broke · 130 cancelled, or no longer watched
"""


@twin(
    "run",
    local.command,
    click.option("--detach", "-d", is_flag=True, help="Don't wait: print the runs' ids, or their records with --json."),
    click.option("--cancel-on-interrupt", is_flag=True, help="Let Ctrl-C cancel the runs instead."),
    click.option("--project", metavar="NAME", help="The project whose quota they count to, by name or id."),
    click.option("--priority", type=click.IntRange(-100, 100), help="Among your own runs; higher goes first."),
    click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="A label of the runs."),
    click.option("--name", metavar="NAME", help="Name of the experiment that several runs make."),
    help=_HELP,
)
def run(ctx: click.Context, /, **asked: Any) -> None:
    """Ask for runs, and see them through."""
    if asked["detach"] and asked["follow"]:
        raise click.UsageError("--detach does not wait; follow a run with `mleredux logs RUN --follow`.")
    there = service(ctx)
    runs, experiment = _ask(there, asked)
    several = len(runs) > 1 or len(asked["tasks"]) > 1 or bool(asked["sets"])
    if asked["detach"]:
        records = [record_of(item, there.url) for item in runs]
        if asked["as_json"]:
            print_json(records if several else records[0])
        else:
            for item in runs:
                click.echo(item["id"])
            click.echo(_go_on(ctx, runs, experiment), err=True)
        return
    if not asked["as_json"]:
        what = f"experiment {experiment}, {len(runs)} runs" if experiment else f"run {runs[0]['id']}"
        click.echo(f"Asked {there.url} for {what}.", err=True)
    watching = {name: asked[name] for name in ("follow", "as_json", "cancel_on_interrupt")}
    see_through(ctx, runs, experiment, several=several, **watching)


def see_through(
    ctx: click.Context,
    runs: list[dict[str, Any]],
    experiment: str | None,
    *,
    several: bool,
    follow: bool,
    as_json: bool,
    cancel_on_interrupt: bool = False,
) -> NoReturn:
    """Watch runs until they have ended, show them as local ones, and exit with what became of them.

    Args:
        several: Whether JSON is a list.
    """
    there = service(ctx)
    ended = _watch(there, runs, experiment, follow=follow, quiet=as_json, cancels=cancel_on_interrupt)
    if ended is None:
        click.echo(f"No longer watched; what was asked for goes on. {_go_on(ctx, runs, experiment)}", err=True)
        ctx.exit(local.EXIT_CANCELLED)
    records = [record_of(item, there.url) for item in ended]
    if as_json:
        print_json(records if several else records[0])
    else:
        from mleredux.plugin.command import closing_table

        one = f"mleredux artifacts {ended[0]['id']}{service_option(ctx)}"
        closing_table([shown_of(item, one if len(ended) == 1 else item["id"]) for item in ended])
    ctx.exit(max(local.exit_code(record) for record in records))


def _ask(there: Service, asked: dict[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
    """The runs as the server has queued them, and their experiment's id where there are several."""
    tasks, agents = list(dict.fromkeys(asked["tasks"])), list(dict.fromkeys(asked["agents"]))
    seeds = list(dict.fromkeys(asked["seeds"])) or [0]
    if not tasks and not asked["sets"]:
        raise click.UsageError("Name a task, like `mleredux run digits --agent baseline`, or a set with --set.")
    if not agents:
        names = ", ".join(item["id"] for item in there.pages("/v1/agents", {})) or "none is installed there"
        raise click.UsageError(f"Name an agent with --agent; there are: {names}.")
    rest = {
        **{name: asked[name] for name in ("sandbox", "network", "project", "priority")},
        "limits": {name: asked[name] for name in local.LIMITS if asked[name] is not None} or None,
        "options": local.read_options(asked["options"]) or None,
        "obfuscated": asked["obfuscated"] or None,
        "context": asked["context"].read() if asked["context"] else None,
        "labels": labels_of(asked["labels"]) or None,
    }
    if asked["sets"] or len(tasks) * len(agents) * len(seeds) > 1:
        matrix = {"name": asked["name"], "tasks": tasks, "sets": list(asked["sets"]) or None, "agents": agents}
        made = there.json(create("/v1/experiments", known({**matrix, "seeds": seeds, **rest})))
        return made["runs"], made["id"]
    if asked["name"]:
        raise click.UsageError("--name is that of an experiment, of several runs; label a single one with --label.")
    one = {"task": tasks[0], "agent": agents[0], "seed": seeds[0]}
    return [there.json(create("/v1/runs", known({**one, **rest})))], None


def _watch(
    there: Service, runs: list[dict[str, Any]], experiment: str | None, *, follow: bool, quiet: bool, cancels: bool
) -> list[dict[str, Any]] | None:
    """The ended runs; None where the user stopped watching."""
    from mleredux.plugin.command import Progress

    from mleredux_client.cli.watching import MOST_LOGS, Watch, interruptible

    if follow and len(runs) > MOST_LOGS:
        click.echo(f"The logs of the first {MOST_LOGS} runs are shown.", err=True)
    with ExitStack() as stack:
        try:
            progress = stack.enter_context(Progress(follow=follow, quiet=quiet))
            watch = Watch(there, runs, experiment, progress)
            stack.enter_context(interruptible(watch.ask_to_cancel if cancels else None))
            return watch.wait()
        except KeyboardInterrupt:
            return None


def _go_on(ctx: click.Context, runs: list[dict[str, Any]], experiment: str | None) -> str:
    """How to see more of runs that nobody watches."""
    there = service_option(ctx)
    if experiment is not None:
        look, stop = f"mleredux runs wait --experiment {experiment}", f"mleredux runs cancel --experiment {experiment}"
    else:
        names = " ".join(run["id"] for run in runs)
        look, stop = f"mleredux runs wait {names}", f"mleredux runs cancel {names}"
    return f"Wait: `{look}{there}`. Stop: `{stop}{there}`."


def labels_of(pairs: tuple[str, ...]) -> dict[str, str]:
    """`key=value` pairs."""
    labels: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{pair!r} is not of the form KEY=VALUE.", param_hint="--label")
        labels[key] = value
    return labels
