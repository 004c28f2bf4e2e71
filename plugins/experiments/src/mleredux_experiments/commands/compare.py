"""`mleredux compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from mleredux.errors import MlereduxError
from mleredux.models.formats import plain
from mleredux.plugin.command import json_option, print_json

from mleredux_experiments.commands.options import measure_option, note, plan_of, results_of, source_options

if TYPE_CHECKING:
    from mleredux_experiments.inference.difference import Comparison

EXIT_CODES = {"better": 0, "equivalent": 10, "not worse": 10, "undecided": 11, "worse": 12, "cannot tell": 13}
"""Exit codes of `--ci`."""


@click.command("compare")
@click.argument("a")
@click.argument("b")
@source_options
@measure_option
@click.option("--margin", type=click.FloatRange(min=0), help="The largest negligible difference.")
@click.option("--alpha", type=click.FloatRange(0.0001, 0.5), help="Chance of a false alarm; 0.05 by default.")
@click.option("--equivalence", is_flag=True, help="Test whether they differ by less than the margin.")
@click.option(
    "--ci",
    is_flag=True,
    help="Exit with 0: B is better, 10: not worse by more than the margin, 11: undecided, 12: worse, "
    "13: cannot tell, too few tasks.",
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    a: str,
    b: str,
    measure: str | None,
    margin: float | None,
    alpha: float | None,
    equivalence: bool,
    ci: bool,
    as_json: bool,
    **selected: Any,
) -> None:
    """Compare agent or arm B with A: scores by task, then the difference, its certainty, and where it occurs.

    An arm is NAME, or NAME[FIELD=VALUE,...] for some of its runs. With --experiment, options that are not set default
    to its plan.
    """
    from mleredux_experiments.execution.sequence import as_planned
    from mleredux_experiments.figures.tables import echo, score_table
    from mleredux_experiments.inference.comparison import compare

    results = results_of(ctx, **selected, rollouts=True)
    plan = plan_of(ctx, selected["runs_dir"], selected["experiment"])
    asked = as_planned(plan, results, measure=measure, alpha=alpha, margin=margin, equivalence=equivalence)
    found = compare(results, a, b, **asked)
    note(results, a, b)
    no_medals = all(row.gold is None and row.medal is None for row in results.rows)
    if asked["chosen"] is None and found.measure == "any_medal" and no_medals:
        if not as_json:
            echo(score_table(found.table))
        message = "These tasks have no leaderboard, and scores of different metrics can't be averaged."
        raise MlereduxError(message, hint="Choose a task with --where task=TASK, or another measure with --measure.")
    if as_json:
        print_json(found.record())
    else:
        _show(found)
    if ci:
        ctx.exit(EXIT_CODES[found.verdict])


def _show(found: Comparison) -> None:
    from mleredux_experiments.figures.tables import comparison_tables, echo, score_table

    echo(score_table(found.table))
    click.echo()
    click.echo(click.style(found.sentence, bold=True))
    click.echo()
    if found.medals:
        click.echo(f"Medals: {found.medals}.")
    click.echo(f"Measure: {found.measure}; differences are {found.b} minus {found.a}, averaged over tasks.")
    click.echo(f"Tasks like these: {found.between(found.interval)}; p = {plain(found.p, 3)}, by sign flips.")
    if found.again is not None:
        click.echo(f"These tasks again, other seeds: {found.between(found.again)}.")
    if found.by_source is not None:
        click.echo(f"Tasks grouped by data source: {found.between(found.by_source)}.")
    click.echo(f"A run of {found.b} is better than a run of {found.a} with probability {found.improvement:.0%}.")
    if found.equivalence is not None:
        click.echo(f"Equivalence within ± {plain(found.margin)} {found.unit}: p = {plain(found.equivalence, 3)}.")
    for name in found.deterministic:
        click.echo(f"{name} is deterministic: its scores do not depend on the seed.")
    if found.bounds is not None:
        worst, best = map(found.amount, found.bounds[:2])
        click.echo(f"Runs are missing: with all of them, the difference would be from {worst} to {best}.")
    if found.left_out:
        click.echo(f"Left out or corrected: {', '.join(f'{count} {why}' for why, count in found.left_out.items())}.")
    for sentence in found.notes:
        click.echo(sentence)
    for table in comparison_tables(found):
        click.echo()
        echo(table)
