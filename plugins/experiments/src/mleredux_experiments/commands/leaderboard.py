"""`mleredux leaderboard` and `experiment familiarity`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from mleredux.plugin.artifact import default_runs_dir
from mleredux.plugin.command import json_option, print_json

from mleredux_experiments.commands.options import note, results_of, source_options


@click.command("leaderboard")
@source_options
@click.option("--score-given", is_flag=True, help="Include runs whose test score was revealed as a reward.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, measure: str | None, score_given: bool, as_json: bool, **selected: Any) -> None:
    """Rank agents by their runs, with errors over seeds and over tasks."""
    from mleredux_experiments.analysis.leaderboard import leaderboard
    from mleredux_experiments.figures.tables import echo, leaderboard_tables
    from mleredux_experiments.results.measures import PUBLISHED
    from mleredux_experiments.results.uniformity import usual_measure

    results = results_of(ctx, **selected)
    results = results if score_given else results.ranked()
    measure = measure or usual_measure(list(results.arms.values()), averaged=True)
    standings = leaderboard(results, (*PUBLISHED, "percentile"), measure)
    note(results)
    if as_json:
        print_json([standing.record() for standing in standings])
        return
    if not standings:
        click.echo("There are no runs yet; start one with `mleredux run TASK --agent AGENT`.")
    for table in leaderboard_tables(standings, measure) if standings else []:
        echo(table)
        click.echo()
    if any(estimate.missing for row in standings for split in row.splits.values() if (estimate := split.get(measure))):
        click.echo("† Runs are missing; the second table shows the bounds.")
    for row in standings:
        if row.left_out:
            reasons = ", ".join(f"{count} {reason}" for reason, count in row.left_out.items())
            click.echo(f"{row.name}: left out {reasons}.")
        # names that are not those of arms state the setting
        if any(stamp.task.endswith(("+dev", "-dev")) for stamp in results.arms.get(row.name, ())):
            click.echo(f"{row.name}: could get scores on held-out training rows during its runs (`+dev`).")


@click.command("familiarity")
@click.argument("arm")
@click.option(
    "--table",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A CSV with the columns task and familiarity; default: log-probabilities that the gateway recorded.",
)
@source_options
@json_option
@click.pass_context
def familiarity_command(
    ctx: click.Context, /, arm: str, table: Path | None, measure: str | None, as_json: bool, **selected: Any
) -> None:
    """Correlate how familiar tasks are to an arm's model with how well the arm does on them."""
    from mleredux_experiments.analysis.familiarity import familiarity, read_table, recorded

    results = results_of(ctx, **selected)
    known = read_table(table) if table else recorded(results.arm(arm), Path(selected["runs_dir"] or default_runs_dir()))
    result = familiarity(results, arm, known, measure)
    note(results)
    if as_json:
        print_json(result.record())
    else:
        click.echo(result.sentence)
