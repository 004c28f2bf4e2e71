"""`mleredux runs failures`: why runs fall short, by fixed rules."""

from __future__ import annotations

from typing import Any

import click
from mleredux.models.formats import plain
from mleredux.plugin.artifact import RunStore
from mleredux.plugin.command import print_json, print_table


@click.command("failures")
@click.argument("names", metavar="[RUN]...", nargs=-1)
@click.option("--judge", metavar="MODEL", help="Also judge with this gateway model, and measure agreement.")
@click.option("--judge-cost", type=click.FloatRange(min=0, min_open=True), metavar="USD", help="Budget of the judge.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(
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

    runs = [store.get(name) for name in names or store.ids()]
    found = [(run, find(run)) for run in runs if run.state.final]
    opinions: dict[str, str] = {}
    judged_by: dict[str, Any] = {}
    primary = {run.id: primary_of(rules) or NONE for run, rules in found}
    if judge is not None and found:
        from mleredux_experiments.failures.judge import judged

        said = judged([run for run, _ in found], judge, judge_cost)
        opinions, agreement = said.categories, said.kappa(primary)
        judged_by = {"judge": judge, "kappa": agreement, "judge_use": said.use.model_dump(mode="json")}
    if as_json:
        print_json(
            [
                {
                    "run": run.id, "task": run.spec.task, "agent": run.spec.agent, "seed": run.spec.seed,
                    "primary": primary_of(findings),
                    "findings": [finding.record() for finding in findings],
                    **({"judged": opinions.get(run.id), **judged_by} if judge else {}),
                }
                for run, findings in found
            ]
        )  # fmt: skip
        return
    rows = [
        {"run": run.id, "task": run.spec.task, "agent": run.spec.agent,
         "failure": f"{finding.category}, overcome" if finding.overcome else finding.category,
         "where": finding.where, "line": finding.line}
        for run, findings in found
        for finding in findings[: None if names else 1]
        if names or not finding.overcome
    ]  # fmt: skip
    if rows:
        columns = (
            ("task", "agent", "failure", "where", "line") if len(found) == 1 else ("run", "failure", "where", "line")
        )
        print_table(rows, columns, give_way=(columns[0], "line"))
    else:
        click.echo("No failures found.")
    if len(found) > 1:
        click.echo()
        counts = counts_by_arm((run.spec.agent, findings) for run, findings in found)
        for agent, counted in sorted(counts.items()):
            parts = [f"{counted[name]} {name}" for name in (*CATEGORIES, "none") if counted[name]]
            click.echo(f"{agent}: {', '.join(parts)} ({counted.total()} runs)")
    for run, said_by_judge in opinions.items():
        if said_by_judge != primary[run]:
            click.echo(f"{run}: {judge} says {said_by_judge}.")
    if judged_by:
        told = "not defined: all runs are in one category" if agreement is None else f"{agreement:.2f}"
        click.echo(f"Agreement of {judge} with the rules over {len(opinions)} runs: kappa {told}.")
        use = said.use
        cost = "unknown" if use.cost_usd is None else f"${plain(use.cost_usd, 4)}"
        click.echo(f"{judge} used {use.prompt_tokens + use.completion_tokens} tokens; cost: {cost}.")
        if len(opinions) < len(found):
            click.echo(f"Its budget is used up: {len(found) - len(opinions)} runs were not judged.")
