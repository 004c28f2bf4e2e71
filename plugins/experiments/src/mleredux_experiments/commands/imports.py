"""`mleredux experiment` and `experiment import`."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from mleredux.plugin.command import CommandGroup, data_dir_option, json_option, print_json, safe


@click.group("experiment", cls=CommandGroup)
def group() -> None:
    """Plan, run and analyze experiments."""


@click.command("import")
@click.argument("reports", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "-o", "--output", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder for `--reports`."
)
@click.option("--name", help="Name of the row.  [default: the name of the file's folder]")
@data_dir_option
@json_option
def command(reports: tuple[Path, ...], output: Path, name: str | None, data_dir: str | None, as_json: bool) -> None:
    """Import published results as rows next to your runs.

    REPORTS are MLE-bench grading reports (*.json, one per run), folders of them, submission.jsonl files, or folders
    with one submission per competition (COMPETITION/submission.csv), which are graded first.
    """
    from mleredux_experiments.results.grading_reports import import_reports

    done = import_reports(reports, output, name, data_dir)
    if as_json:
        print_json([{"from": str(origin), "to": str(path)} for origin, path in done])
    else:
        for origin, path in done:
            click.echo(safe(f"{origin} → {path}"))
        click.echo(f"See `mleredux leaderboard --reports {shlex.quote(str(output))}`.")
