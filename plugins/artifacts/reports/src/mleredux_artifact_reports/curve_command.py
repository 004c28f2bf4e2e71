"""`mleredux runs plot`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mleredux.plugin.artifact import RunStore


@click.command("plot")
@click.argument("runs", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    "outputs",
    type=click.Path(dir_okay=False, path_type=Path),
    multiple=True,
    help="Write the plot to this file (.png, .svg or .pdf); can be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a plot.")
@click.pass_obj
def command(store: RunStore, runs: tuple[str, ...], outputs: tuple[Path, ...], as_json: bool) -> None:
    """Plot the score of runs over time. RUNS are run ids, parts of ids, or `last`."""
    from mleredux_artifact_reports import curves

    shown = [curves.curve_of(store.get(name)) for name in runs]
    for path in outputs:
        curves.save(shown, path)
        click.echo(f"Wrote {path}.", err=as_json)
    if as_json:
        click.echo(json.dumps(curves.as_json(shown), indent=1))
    elif not outputs:
        size = shutil.get_terminal_size((90, 24))
        click.echo(curves.draw_in_terminal(shown, size.columns, min(size.lines - 2, 30)))
