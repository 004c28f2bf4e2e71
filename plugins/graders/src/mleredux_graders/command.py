"""`mleredux grade --metric`."""

from __future__ import annotations

from pathlib import Path

import click
from mleredux.models.formats import counted, plain
from mleredux.plugin.command import json_option, print_json


@click.command("metric")
@click.argument("metric")
@click.argument("predictions", type=click.Path(path_type=Path))
@click.argument("answers", type=click.Path(path_type=Path))
@json_option
def command(metric: str, predictions: Path, answers: Path, as_json: bool) -> None:
    """Grade PREDICTIONS against ANSWERS, two CSV files, with the function METRIC (`FILE.py:NAME`)."""
    from mleredux_tables import find_function, grade_files

    graded = grade_files(find_function(metric), predictions, answers)
    if as_json:
        print_json(graded._asdict())
    else:
        matched = f"matched by {', '.join(graded.ids)}" if graded.ids else "matched by position"
        click.echo(f"score  {plain(graded.score, 6)}  ({graded.metric}, {counted(graded.rows, 'row')} {matched})")
