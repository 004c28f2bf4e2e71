"""`mleredux doctor`."""

from __future__ import annotations

from typing import Any

import click

from mleredux._core.cli.context import catalogue
from mleredux._core.cli.options import data_dir_option, json_option, runs_dir_option
from mleredux._core.cli.output import print_json, safe
from mleredux.models.formats import counted

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "error": ("✗", "red")}


@click.command()
@click.argument("tasks", nargs=-1)
@click.option("--set", "sets", multiple=True, metavar="NAME", help="Include all tasks of this set (lite, starter, …).")
@click.option("--agent", "agents", multiple=True, metavar="ID|PATH", help="Also check that this agent can run here.")
@click.option("--sandbox", metavar="ID", help="Sandbox to run the agent in.  [default: the best one]")
@click.option("--gpu", is_flag=True, help="Show which GPUs an agent would see: run a probe in each sandbox.")
@runs_dir_option
@data_dir_option
@json_option
@click.pass_context
def command(ctx: click.Context, /, agents: tuple[str, ...], sandbox: str | None, gpu: bool, **parameters: Any) -> None:
    """Check this machine's setup and suggest fixes; with TASKS or --set, also check whether these can run.

    For tasks, the checks cover the metric, the disk space and the data: whether it is on this machine, or can be
    downloaded with the account's credentials and accepted rules. Nothing is downloaded.

    With --gpu, a probe runs in each sandbox (or that of --sandbox, in the environment of --agent) as an agent would, on
    one GPU if there is one. It prints device nodes, variables, and what nvidia-smi, PyTorch, TensorFlow and JAX find.

    \b
    Exit codes: 0 runs work on this machine, perhaps with warnings · 1 error · 2 usage · 3 a requirement is not met
    """
    from mleredux._core.checks.machine import diagnose, healthy
    from mleredux._core.data.datastore import DataStore
    from mleredux._core.store import RunStore

    plugins, data = catalogue(ctx), DataStore(parameters["data_dir"])
    chosen = plugins.task_names(parameters["tasks"], parameters["sets"])
    if agents and not chosen and not gpu:
        raise click.UsageError("--agent needs a task, e.g. `mleredux doctor digits --agent baseline`.")
    if chosen:
        from mleredux._core.checks.readiness import diagnose_pair, diagnose_tasks

        diagnoses = diagnose_tasks(plugins, [plugins.task(name) for name in chosen], data)
        for agent in agents:
            for name in chosen:
                diagnoses += diagnose_pair(plugins, name, agent, sandbox=sandbox)
    else:
        diagnoses = [] if gpu else diagnose(plugins, RunStore(parameters["runs_dir"]), data)
    if gpu:
        from mleredux._core.plugins.discovery import provided

        diagnoses += provided("diagnose_gpus")(plugins, [sandbox] if sandbox else (), *agents[:1])
    works = healthy(diagnoses)
    if parameters["as_json"]:
        print_json({"healthy": works, "findings": [diagnosis.as_json() for diagnosis in diagnoses]})
        ctx.exit(0 if works else 3)
    area = None
    for diagnosis in diagnoses:
        if diagnosis.area != area:
            area = diagnosis.area
            click.echo(click.style(area, bold=True))
        mark, colour = _MARKS[diagnosis.level]
        finding = diagnosis.finding
        click.echo(f"  {click.style(mark, fg=colour)} {finding.name}: {safe(finding.message)}")
        if not finding.ok and finding.remedy:
            click.echo(f"    → {safe(finding.remedy)}")
    counts = [counted(sum(item.level == level for item in diagnoses), level) for level in ("error", "warning")]
    what = f"{', '.join(agents) or 'agents'}{' on these tasks' if chosen else ''}{' with GPUs' if gpu else ''}"
    click.echo(f"\nThis machine {'can' if works else 'cannot'} run {what}: {', '.join(counts)}.")
    ctx.exit(0 if works else 3)
