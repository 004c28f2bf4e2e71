"""Options and inputs shared by the commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from mleredux.plugin.artifact import default_runs_dir
from mleredux.plugin.command import backend, runs_dir_option, server_of

from mleredux_experiments.results.grading_reports import PUBLISHED_FOLDER, load_reports
from mleredux_experiments.results.sources import from_records, load
from mleredux_experiments.results.table import Results

if TYPE_CHECKING:
    from mleredux.plugin.experiment import Plan

_Command = TypeVar("_Command", bound=Callable[..., Any])
_MOST_RUNS = 20_000

where_option = click.option(
    "--where", multiple=True, metavar="FIELD=VALUE", help="Only runs with this value, e.g. seed=0 or category=Tabular."
)
measure_option = click.option(
    "--measure", help="Measure to compare.  [default: percentile with a leaderboard, else score or any_medal]"
)
experiment_option = click.option("--experiment", metavar="ID", help="Only the runs of this experiment.")
reports_option = click.option(
    "--reports",
    type=click.Path(file_okay=False, path_type=Path),
    help="Read MLE-bench grading reports instead of runs: one folder per row, with one *.json file per run.",
)


published_option = click.option("--published", is_flag=True, help="Include published results.")


def source_options(command: _Command) -> _Command:
    """Add the options that select runs (`--runs-dir`, `--reports`, `--published`, `--experiment`, `--where`), and the
    measure."""
    for option in (measure_option, where_option, experiment_option, published_option, reports_option, runs_dir_option):
        command = option(command)
    return command


def results_of(
    ctx: click.Context,
    runs_dir: str | None,
    reports: Path | None,
    experiment: str | None,
    where: tuple[str, ...],
    published: bool = False,
    *,
    rollouts: bool = False,
) -> Results:
    """Return the runs that the options select, from this machine or a server.

    Args:
        rollouts: Also read rollouts and logs, for the agents' own measurements and failures.
    """
    if reports is not None and (runs_dir is not None or experiment is not None):
        raise click.UsageError("--reports cannot be combined with --runs-dir or --experiment.", ctx)
    if server_of(ctx) is not None and experiment is not None:
        from mleredux_experiments.commands.there import ExperimentThere

        results = ExperimentThere(backend(ctx), experiment).results
    elif server_of(ctx) is not None:
        remote = backend(ctx)
        ids = [str(row["id"]) for row in remote.runs({}, _MOST_RUNS).rows]
        results = from_records(remote.view(run).record for run in ids)
    elif reports is not None:
        results = load_reports(reports)
    elif published and runs_dir is None and not default_runs_dir().is_dir():
        results, published = load_reports(PUBLISHED_FOLDER), False
    else:
        results = load(runs_dir, experiment=experiment, rollouts=rollouts)
    if published:
        results = results.keep([*results.rows, *load_reports(PUBLISHED_FOLDER).rows])
    return results.where(where) if where else results


def plan_of(ctx: click.Context, runs_dir: str | None, experiment: str | None) -> Plan | None:
    """Return the frozen plan of an experiment; None if it has none."""
    from mleredux_experiments.execution.record import FOLDER, RECORD_FILE, open_record

    if experiment is None:
        return None
    if server_of(ctx) is not None:
        from mleredux_experiments.commands.there import ExperimentThere

        return ExperimentThere(backend(ctx), experiment).plan
    folder = (Path(runs_dir) if runs_dir else default_runs_dir()) / FOLDER / experiment
    return open_record(folder).plan if (folder / RECORD_FILE).is_file() else None


def note(results: Results, *arms: str) -> None:
    """Print to stderr which runs were left out; only those of these arms if any are named."""
    for sentence in results.remarks(arms or None):
        click.echo(sentence, err=True)
