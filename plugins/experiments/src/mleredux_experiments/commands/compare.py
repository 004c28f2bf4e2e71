"""`mleredux compare` and `mleredux power`."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click
from mleredux.errors import MlereduxError
from mleredux.models.formats import counted, plain
from mleredux.plugin.command import json_option, print_json

from mleredux_experiments.commands.options import note, plan_of, results_of, source_options

if TYPE_CHECKING:
    from mleredux_experiments.inference.difference import Comparison

EXIT_CODES = {"better": 0, "equivalent": 10, "not worse": 10, "undecided": 11, "worse": 12, "cannot tell": 13}
"""Exit codes of `--ci`."""


@click.command("compare")
@click.argument("a")
@click.argument("b")
@source_options
@click.option("--margin", type=click.FloatRange(min=0), help="The largest negligible difference.")
@click.option("--alpha", type=click.FloatRange(0.0001, 0.5), help="Chance of a false alarm; 0.05 by default.")
@click.option("--equivalence", is_flag=True, help="Test whether the two differ by less than the margin.")
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
    from mleredux_experiments.results.measures import Immeasurable
    from mleredux_experiments.results.scores import task_scores
    from mleredux_experiments.results.table import pairing

    results = results_of(ctx, **selected, rollouts=True)
    plan = plan_of(ctx, selected["runs_dir"], selected["experiment"])
    options = as_planned(plan, results, measure=measure, alpha=alpha, margin=margin, equivalence=equivalence)
    note(results, a, b)
    comparison: Comparison | None
    try:
        comparison = compare(results.under(plan), a, b, **options)
        record = comparison.record()
    except Immeasurable as error:
        comparison, arms = None, {arm: results.arm(arm) for arm in (a, b)}
        table = task_scores(arms, pairing(arms.values()))
        record = {"sentence": str(error), "verdict": "cannot tell", "table": [asdict(task) for task in table]}
    if as_json:
        print_json(record)
    elif comparison:
        _show(comparison)
    else:
        echo(score_table(table))
        click.echo(f"\n{record['sentence']}")
    if ci:
        ctx.exit(EXIT_CODES[record["verdict"]])


def _show(shown: Comparison) -> None:
    from mleredux_experiments.figures.tables import comparison_tables, echo, score_table

    echo(score_table(shown.table))
    click.echo()
    click.echo(click.style(shown.sentence, bold=True))
    click.echo()
    if shown.medals:
        click.echo(f"Medals: {shown.medals}.")
    click.echo(f"Measure: {shown.measure}; differences are {shown.b} minus {shown.a}, averaged over tasks.")
    click.echo(f"Tasks like these: {shown.between(shown.interval)}; p = {plain(shown.p, 3)}, by sign flips.")
    if shown.again is not None:
        click.echo(f"These tasks again, other seeds: {shown.between(shown.again)}.")
    if shown.by_source is not None:
        click.echo(f"Tasks grouped by data source: {shown.between(shown.by_source)}.")
    click.echo(
        f"A run of {shown.b} is better than a run of {shown.a} with probability {100 * shown.improvement:.0f} %."
    )
    if shown.equivalence is not None:
        click.echo(f"Equivalence within ± {shown.exactly(shown.margin)}: p = {plain(shown.equivalence, 3)}.")
    if names := shown.deterministic:
        click.echo(f"Deterministic, so that scores do not depend on the seed: {', '.join(names)}.")
    if shown.bounds is not None:
        worst, best = map(shown.amount, shown.bounds[:2])
        click.echo(f"Runs are missing: with all of them, the difference would range from {worst} to {best}.")
    if shown.left_out:
        click.echo(f"Left out or corrected: {', '.join(f'{count} {why}' for why, count in shown.left_out.items())}.")
    for sentence in shown.notes:
        click.echo(sentence)
    for table in comparison_tables(shown):
        click.echo()
        echo(table)


@click.command("power")
@click.argument("arms", nargs=-1, metavar="[A B]")
@click.option("--difference", type=click.FloatRange(min=0, min_open=True), help="Difference to detect, in points.")
@click.option("--tasks", type=click.IntRange(min=1), help="Number of tasks; by default, as in the runs of A and B.")
@click.option("--seeds", type=click.IntRange(min=1), help="Runs per task and arm; by default, as in the runs.")
@click.option("--between", type=click.FloatRange(min=0), help="SD of the difference between tasks, in points.")
@click.option("--within", type=click.FloatRange(min=0), help="SD of an arm's runs on the same task, in points.")
@click.option("--alpha", type=click.FloatRange(0.0001, 0.5), help="Chance of a false alarm; 0.05 by default.")
@click.option(
    "--power", type=click.FloatRange(0.01, 0.999), default=0.8, show_default=True, help="Probability of detection."
)
@source_options
@json_option
@click.pass_context
def power_command(
    ctx: click.Context,
    /,
    arms: tuple[str, ...],
    difference: float | None,
    tasks: int | None,
    seeds: int | None,
    between: float | None,
    within: float | None,
    alpha: float | None,
    power: float,
    measure: str | None,
    as_json: bool,
    **selected: Any,
) -> None:
    """Compute how many tasks and seeds are needed to detect a difference, or which difference they detect.

    With --experiment, its plan defines the question, such as equivalence within its margin.

    The variance is estimated from the runs of agents A and B, or set by --between and --within.
    """
    from mleredux_experiments.inference.power import Sample, Variance
    from mleredux_experiments.results.measures import measure as measure_of

    if len(arms) == 2:
        from mleredux_experiments.execution.sequence import as_planned
        from mleredux_experiments.inference.comparison import compare

        results = results_of(ctx, **selected)
        plan = plan_of(ctx, selected["runs_dir"], selected["experiment"])
        comparison = compare(results, *arms, **as_planned(plan, results, measure=measure, alpha=alpha))
        note(results)
        sample, what = comparison.sample, measure_of(comparison.measure)
    elif arms or between is None:
        raise click.UsageError("Specify two agents with runs, or --between (and --within) without agents.", ctx)
    else:
        noise, what = (within or 0) ** 2, measure_of(measure or "any_medal")
        variance = Variance(between**2, noise, noise)
        sample = Sample(variance, 22, 3, alpha or 0.05, reach=what.reach, share=what.share)
    variance, count, repeats = sample.variance, tasks or sample.tasks, seeds or max(round(sample.seeds), 1)
    sample = replace(sample, tasks=count, seeds=repeats, power=power)
    if variance.tasks == 1:
        message = "Runs on one task do not show how differences vary between tasks."
        raise MlereduxError(message, hint="Run both on more tasks, or specify --between and --within without agents.")
    if not variance.of_mean(repeats):
        where = f"These runs of {' and '.join(arms)} do" if arms else "Differences of SD 0 do"
        raise MlereduxError(
            f"{where} not vary in {what.name}, so their variance is unknown.",
            hint="Choose another --measure, or specify --between and --within without agents, one of them above 0.",
        )
    difference = difference or sample.margin or None
    if difference is not None and difference > (what.reach or difference):
        raise click.UsageError(
            f"Two runs differ in {what.name} by at most {plain(what.reach or 0)} {what.points}.", ctx
        )
    here = f"{counted(count, 'task')} with {counted(repeats, 'seed')} detect{'s' * (count == 1)}"
    smallest = sample.detectable
    size, spread = {"tasks": count, "seeds": repeats}, asdict(variance)
    document: dict[str, object] = {**size, "detectable": smallest, "variance": spread}
    text = [f"{here} {sample.goal}{plain(smallest or 0, 3)} {what.points} with a power of {power:.0%}."]
    if smallest is None:
        text = [f"{here} {sample.goal}no possible difference with a power of {power:.0%}."]
    if count < sample.least:
        text[0] += f" A decision at {plain(100 * sample.alpha, 3)} % needs {counted(sample.least, 'task')} or more."
    if difference is not None:
        chance, enough = sample.chance(difference), sample.tasks_for(difference)
        more = sample.seeds_for(difference) if variance.separated else None
        document |= {"difference": difference, "power": chance, "needed": {"tasks": enough, "seeds": more}}
        text.append(f"They detect {sample.goal}{plain(difference)} {what.points} with a power of {chance:.0%}.")
        if chance < power:
            ways = [counted(enough, "task")] if enough else []
            ways += [f"{counted(more, 'seed')} a task"] if more else []
            text.append(f"{' or '.join(ways)} would detect it." if ways else "No plan would detect it.")
    if count >= sample.least and (certainty := sample.certainty(what.points, difference)):
        text.append(certainty)
        document["range"] = [part.detectable for part in sample.range or ()]
    if as_json:
        print_json({**document, "sentence": " ".join(text)})
    else:
        click.echo("\n".join(text))
