"""Commands for stored runs: `mleredux runs failures`, which shows why runs fall short, and `mleredux regrade`."""

from __future__ import annotations

from typing import Any

import click
from mleredux.errors import MlereduxError
from mleredux.models.formats import counted, plain, short_reference
from mleredux.plugin.artifact import Report, RunStore
from mleredux.plugin.command import (
    DataStore,
    catalogue,
    data_dir_option,
    json_option,
    print_json,
    print_table,
    runs_dir_option,
)


@click.command("failures")
@click.argument("names", metavar="[RUN]...", nargs=-1)
@click.option("--judge", metavar="MODEL", help="Also judge with this gateway model, and measure agreement.")
@click.option("--judge-cost", type=click.FloatRange(min=0, min_open=True), metavar="USD", help="Budget of the judge.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def failures_command(
    store: RunStore, names: tuple[str, ...], judge: str | None, judge_cost: float | None, as_json: bool
) -> None:
    """Show why runs failed or fell short, with the log line as evidence; without RUN, for all runs.

    Each run has one primary cause, the failure that ended it, listed first. Failures that the run overcame are listed
    separately, and not counted. Categories correspond to the failure modes of MAST. A model may give a second opinion
    on the primary cause; kappa is its agreement with the rules beyond chance.
    """
    from mleredux_experiments.failures import CATEGORIES, NONE
    from mleredux_experiments.failures import primary as primary_of
    from mleredux_experiments.failures.counts import counts_by_arm, find
    from mleredux_experiments.results.sources import UNREADABLE

    findings_of_runs, damaged = [], []
    for name in names or store.ids():
        try:
            run = store.get(name)
            findings_of_runs += [(run, find(run))] if run.state.final else []
        except (MlereduxError, *UNREADABLE) as error:
            if names and isinstance(error, MlereduxError):
                raise
            if names:
                raise MlereduxError(f"Run {name} can't be read ({type(error).__name__}).") from error
            damaged.append(name)
    if damaged:
        click.echo(f"Damaged and left out: {', '.join(sorted(damaged))}.", err=True)
    opinions: dict[str, str] = {}
    judged_by: dict[str, Any] = {}
    primary = {run.id: primary_of(rules) or NONE for run, rules in findings_of_runs}
    if judge is not None and findings_of_runs:
        from mleredux_experiments.failures.judge import judged

        judgment = judged([run for run, _ in findings_of_runs], judge, judge_cost)
        opinions, agreement = judgment.categories, judgment.kappa(primary)
        judged_by = {"judge": judge, "kappa": agreement, "judge_use": judgment.use.model_dump(mode="json")}
    if as_json:
        print_json(
            [
                {
                    "run": run.id, "task": run.spec.task, "agent": run.spec.agent, "seed": run.spec.seed,
                    "primary": primary_of(findings),
                    "findings": [finding.record() for finding in findings],
                    **({"judged": opinions.get(run.id), **judged_by} if judge else {}),
                }
                for run, findings in findings_of_runs
            ]
        )  # fmt: skip
        return
    rows = [
        {"run": run.id, "task": run.spec.task, "agent": run.spec.agent,
         "failure": f"{finding.category}, overcome" if finding.overcome else finding.category,
         "where": finding.where, "line": finding.line}
        for run, findings in findings_of_runs
        for finding in findings[: None if names else 1]
        if names or not finding.overcome
    ]  # fmt: skip
    if rows:
        first = ("task", "agent") if len(findings_of_runs) == 1 else ("run",)
        print_table(rows, (*first, "failure", "where", "line"), give_way=(first[0], "line"))
    else:
        click.echo("No failures found.")
    if len(findings_of_runs) > 1:
        click.echo()
        counts = counts_by_arm((run.spec.agent, findings) for run, findings in findings_of_runs)
        for agent, categories in sorted(counts.items()):
            parts = [f"{categories[name]} {name}" for name in (*CATEGORIES, "none") if categories[name]]
            click.echo(f"{short_reference(agent)}: {', '.join(parts)} ({counted(categories.total(), 'run')})")
    for name, said_by_judge in opinions.items():
        if said_by_judge != primary[name]:
            click.echo(f"{name}: {judge} says {said_by_judge}.")
    if judged_by:
        kappa = "not defined: all runs are in one category" if agreement is None else f"{agreement:.2f}"
        click.echo(f"Agreement of {judge} with the rules over {counted(len(opinions), 'run')}: kappa {kappa}.")
        use = judgment.use
        cost = "unknown" if use.cost_usd is None else f"${plain(use.cost_usd, 4)}"
        click.echo(f"{judge} used {counted(use.prompt_tokens + use.completion_tokens, 'token')}; cost: {cost}.")
        if len(opinions) < len(findings_of_runs):
            unjudged = counted(len(findings_of_runs) - len(opinions), "run")
            click.echo(f"Its budget is used up; not judged: {unjudged}.")


@click.command("regrade")
@click.argument("runs", nargs=-1)
@click.option("--experiment", metavar="NAME", help="Include all runs of this experiment that have a report.")
@runs_dir_option
@data_dir_option
@json_option
@click.pass_context
def regrade_command(
    ctx: click.Context,
    runs: tuple[str, ...],
    experiment: str | None,
    runs_dir: str | None,
    data_dir: str | None,
    as_json: bool,
) -> None:
    """Grade finished runs again with the installed task and grader; all reports are kept, with their versions."""
    from mleredux_grading import regrade

    store = RunStore(runs_dir)
    rows = store.rows() if experiment is not None else ()
    listed = (row["id"] for row in rows if row["experiment"] == experiment and row["status"] == "done")
    selected = [store.get(name) for name in dict.fromkeys((*runs, *listed))]
    if not selected:
        raise click.UsageError("Specify runs, or an experiment with finished runs (--experiment).", ctx)
    records: list[dict[str, Any]] = []
    for run in selected:
        record: dict[str, Any] = {"id": run.id, "task": run.spec.task, "before": None, "after": None, "error": None}
        try:
            before, after = regrade(run, catalogue(ctx), DataStore(data_dir) if data_dir else None)
            record |= {"before": _facts(before), "after": _facts(after)}
            store.update(run)
        except MlereduxError as error:
            record["error"] = str(error)
        records.append(record)
    if as_json:
        print_json(records)
    else:
        shown = [
            {**entry, **{name: entry[name] and _text(entry[name]) for name in ("before", "after")}} for entry in records
        ]
        print_table(shown, ("id", "task", "before", "after"), ("id",))
        for message in filter(None, (entry["error"] for entry in records)):
            click.echo(message, err=True)
    ctx.exit(1 if any(entry["error"] for entry in records) else 0)


def _facts(report: Report) -> dict[str, Any]:
    facts = {name: getattr(report, name) for name in ("score", "medal", "task_version")}
    return {**facts, "valid": report.valid_submission}


def _text(facts: dict[str, Any]) -> str:
    score = "invalid" if not facts["valid"] else plain(facts["score"], 5) if facts["score"] is not None else "-"
    return f"{score} {facts['medal'] or ''}".strip() + f" (version {facts['task_version']})"
