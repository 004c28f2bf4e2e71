"""Experiments on a server, and the status of local and remote experiments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from mleredux.models.formats import counted, duration
from mleredux.plugin.command import (
    Backend,
    RunRequest,
    backend,
    current,
    follow_runs,
    print_facts,
    print_json,
    print_table,
)
from mleredux.plugin.experiment import Plan

from mleredux_experiments.execution.execution import STATES, progress
from mleredux_experiments.execution.plan import read_plan
from mleredux_experiments.results.sources import seconds_between
from mleredux_experiments.results.table import Results


def show(record: dict[str, Any], as_json: bool) -> None:
    """Print the status of an experiment."""
    if as_json:
        print_json(record)
        return
    name, question = record["name"], record["question"]
    click.echo(click.style(f"{name}: {question}" if question else name, bold=True))
    click.echo(f"{record['ended']} of {counted(record['total'], 'run')} ended.\n")
    states = [state for state in STATES if state == "ended" or record[state]]
    print_table(record["arms"], ("arm", "total", *states))
    unpriced = counted(record["unpriced"], "run") if record["unpriced"] else None
    click.echo()
    print_facts(
        {
            "time": duration(3600 * record["hours"]) if record["hours"] is not None else None,
            "paused": duration(3600 * record["paused_hours"]) if record.get("paused_hours") else None,
            "remaining": hours_text(hours) if (hours := record.get("remaining_hours")) else None,
            "cost": f"${record['cost_usd']:.2f}" if record["cost_usd"] else None,
            "unpriced": unpriced and f"{unpriced} used a model without a known price",
            "failures": record["failures"],
            "folder": record["path"],
        }
    )
    if record["stopped"]:
        click.echo(record["stopped"])
    for change in record["deviations"]:
        click.echo(f"Deviation after {change['results']} results: {change['what']}")
    if record["broken"]:
        click.echo(f"Repeat broken runs with `mleredux experiment retry {name}`.")


def hours_text(hours: Mapping[str, float]) -> str:
    """Return an estimated number of hours and its 80 % range as text, in suitable units."""
    mean, low, high = (duration(3600 * hours[key]) for key in ("mean", "low", "high"))
    return f"{mean} (80 %: {low} to {high})"


def run_there(ctx: click.Context, plan: Plan, project: str | None, as_json: bool) -> None:
    """Create an experiment on the server, and wait until it ends."""
    remote = backend(ctx)
    batch = remote.create(RunRequest(runs=plan.request, plan=plan, project=project))
    if not as_json:
        click.echo(batch.note, err=True)
    follow_runs(ctx, remote, batch, several=True, follow=False, as_json=as_json)


def act_there(ctx: click.Context, experiment: str, action: str, body: Mapping[str, Any] | None, as_json: bool) -> None:
    """Extend or retry an experiment on the server, and print its status."""
    show(_status(backend(ctx).experiment(_name_of(experiment), action, body)), as_json)


def status_there(ctx: click.Context, experiment: str) -> dict[str, Any]:
    """Return the status of an experiment on the server, with the same fields as for a local one."""
    return _status(backend(ctx).experiment(_name_of(experiment)))


def _name_of(experiment: str) -> str:
    """Return the name in a plan file; return any other argument (an id or a name) unchanged."""
    path = Path(experiment)
    return read_plan(path, current()).experiment.name if path.suffix == ".toml" and path.is_file() else experiment


class ExperimentThere:
    """An experiment on a server, to be analyzed on this machine.

    Attributes:
        name: Its name.
        plan: Its plan, if it has one, without the contents of context files.
        deviations: Each deviation from the plan as a sentence.
    """

    def __init__(self, remote: Backend, name: str) -> None:
        self._there, detail = remote, remote.experiment(_name_of(name))
        self._id, self.name = str(detail["id"]), str(detail["name"])
        self.plan = Plan.model_validate(detail["plan"]) if detail.get("plan") else None
        changes = [change for change in detail.get("changes") or [] if change["results"]]
        self.deviations = [f"After {change['results']} results: {change['what']}" for change in changes]

    @property
    def results(self) -> Results:
        """Return the table of its runs that have ended."""
        return Results.of(self._there.experiment(self._id, "table"))


def _status(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status; the state of a cell is that of its best attempt: one that counts, or else the newest."""
    cells: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for run in experiment["runs"]:
        place = (str(run["arm"] or run["agent"]), run["task"], run["seed"])
        if place not in cells or _state(cells[place]) != "ended":
            cells[place] = run
    spent, runs = experiment.get("spent") or {}, experiment["runs"]
    seconds = (run.get("seconds") or seconds_between(run["started_at"], run["ended_at"]) or 0.0 for run in runs)
    return {
        "name": experiment["name"],
        "question": ((experiment.get("plan") or {}).get("experiment") or {}).get("question", ""),
        "path": None,
        **progress((arm, _state(run)) for (arm, *_), run in cells.items()),
        "failures": dict(Counter(str(run["cause"]) for run in cells.values() if run["cause"])),
        "attempts": len(runs),
        "hours": spent.get("hours", sum(seconds) / 3600),
        "paused_hours": sum(run.get("paused_seconds") or 0.0 for run in runs) / 3600,
        "cost_usd": spent.get("cost_usd"),
        "unpriced": 0,
        "stopped": experiment.get("stopped"),
        "deviations": [change for change in experiment.get("changes", []) if change["results"]],
        "digest": None,
    }


def _state(run: Mapping[str, Any]) -> str:
    if run["cause"] in ("environment_broke", "task_broken"):
        return "broken"
    if run["status"] in ("done", "failed", "timed_out"):
        return "ended"
    return "missing" if run["status"] in ("queued", "cancelled") else "running"
