"""`mleredux experiment familiarity`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from mleredux.plugin.artifact import default_runs_dir
from mleredux.plugin.command import json_option, print_json

from mleredux_experiments.commands.options import measure_option, note, results_of, source_options


@click.command("familiarity")
@click.argument("arm")
@click.option(
    "--table",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A CSV with the columns task and familiarity; default: log-probabilities that the gateway recorded.",
)
@source_options
@measure_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, arm: str, table: Path | None, measure: str | None, as_json: bool, **selected: Any
) -> None:
    """Correlate how familiar tasks are to an arm's model with how well the arm does on them."""
    from mleredux_experiments.analysis.familiarity import familiarity, read_table, recorded

    results = results_of(ctx, **selected)
    known = read_table(table) if table else recorded(results.arm(arm), Path(selected["runs_dir"] or default_runs_dir()))
    found = familiarity(results, arm, known, measure)
    note(results)
    if as_json:
        print_json(found.record())
    else:
        click.echo(found.sentence)
