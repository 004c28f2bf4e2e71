"""`mleredux experiment analyse`, `report` and `export`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from mleredux.plugin.command import backend, json_option, print_json, runs_dir_option, server_of

from mleredux_experiments.commands.options import measure_option, where_option

if TYPE_CHECKING:
    from mleredux_experiments.analysis.analysis import Analysis

_Command = TypeVar("_Command", bound=Callable[..., Any])
FORMATS = ("csv", "json", "latex", "markdown", "parquet")


def _options(command: _Command) -> _Command:
    for option in (
        json_option,
        runs_dir_option,
        where_option,
        click.option("--alpha", type=click.FloatRange(0.0001, 0.5), help="Chance of a false alarm; 0.05 by default."),
        click.option("--margin", type=click.FloatRange(min=0), help="Largest negligible difference."),
        click.option("--baseline", metavar="ARM", help="The arm to compare the others with; the first by default."),
        measure_option,
        click.argument("results", metavar="PLAN_OR_DIR"),  # with a server: also an experiment's id
    ):
        command = option(command)
    return command


def _analysis(
    ctx: click.Context, results: str, where: tuple[str, ...], runs_dir: str | None, **options: Any
) -> Analysis:
    """Analyze the named results; options that are not set default to those of the experiment's plan."""
    from mleredux_experiments.commands.there import ExperimentThere
    from mleredux_experiments.execution.record import RECORD_FILE, open_record
    from mleredux_experiments.results.sources import load, locate
    from mleredux_experiments.sdk import analysed

    if server_of(ctx) is not None:
        if runs_dir is not None:
            raise click.UsageError("--runs-dir can't be combined with a server.", ctx)
        there = ExperimentThere(backend(ctx), results)
        return analysed(there.results.where(where), there.plan, name=there.name, changes=there.deviations, **options)
    folder = locate(results, runs_dir)
    record = open_record(folder) if (folder / RECORD_FILE).is_file() else None
    runs, plan = load(folder, rollouts=True).where(where), record.plan if record else None
    changes = record.sentences if record else []
    return analysed(runs, plan, name=folder.resolve().name, changes=changes, **options)


@click.command("analyse")
@_options
@click.pass_context
def analyse_command(ctx: click.Context, /, as_json: bool, **selected: Any) -> None:
    """Analyze the runs of an experiment (with --server, on the server), or a folder of runs or reports."""
    from mleredux_experiments.figures.tables import analysis_tables, echo

    analysis = _analysis(ctx, **selected)
    if as_json:
        print_json(analysis.record())
        return
    for sentence in analysis.sentences:
        click.echo(click.style(sentence, bold=True))
    for note in analysis.remarks:
        click.echo(note)
    for table in analysis_tables(analysis):
        click.echo()
        echo(table)


@click.command("report")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("report"),
    show_default=True,
    help="Folder for the page and the plots.",
)
@click.option("--png", is_flag=True, help="Also write the plots as PNG.")
@_options
@click.pass_context
def report_command(ctx: click.Context, /, output: Path, png: bool, as_json: bool, **selected: Any) -> None:
    """Write one offline HTML page with all plots, and the plots as SVG."""
    from mleredux_experiments.figures.report import write

    files = write(_analysis(ctx, **selected), output, ("svg", "png") if png else ("svg",))
    if as_json:
        print_json({"page": str(files[0]), "files": [str(path) for path in files]})
    else:
        click.echo(f"{files[0]} has {sum(path.suffix == '.svg' for path in files)} plots.")


@click.command("export")
@click.option("--to", "form", type=click.Choice(FORMATS), required=True, help="Format.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="Output file (csv: a folder, one file per table).",
)
@_options
@click.pass_context
def export_command(ctx: click.Context, /, form: str, output: Path, as_json: bool, **selected: Any) -> None:
    """Export the runs (parquet, csv) and the tables of their analysis (csv, latex, markdown, json)."""
    from mleredux_experiments.figures.report import export

    files = export(_analysis(ctx, **selected), form, output)
    if as_json:
        print_json([str(path) for path in files])
    else:
        click.echo("\n".join(str(path) for path in files))
