"""`mleredux export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from mleredux.plugin.command import catalogue, json_option, print_json, read_options, runs_dir_option


@click.command("export")
@click.argument("runs", nargs=-1, required=True)
@click.option("--to", "to", required=True, metavar="FORMAT", help="A format from `mleredux list formats`.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Output file or folder.  [required]")
@click.option("-O", "--option", "options", multiple=True, metavar="KEY=VALUE", help="Set an option of the format.")
@click.option("--min-score", type=float, help="Only runs with this score or a better one.")
@click.option("--verified", is_flag=True, help="Only results whose verdict is `verified`.")
@click.option("--license", "licenses", multiple=True, metavar="SPDX", help="Only tasks whose data has this license.")
@click.option("--all", "everything", is_flag=True, help="Include runs that are omitted by default.")
@runs_dir_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    runs: tuple[str, ...],
    to: str,
    output: Path | None,
    options: tuple[str, ...],
    runs_dir: str | None,
    as_json: bool,
    **filters: Any,
) -> None:
    """Export RUNS in the format of another system.

    Formats with one file per run write to the folder OUTPUT, or to the file OUTPUT for a single run. Runs that quote a
    canary are omitted, as are tainted results in formats for training or publication. By default, training data omits
    cancelled and empty runs, and published results omit runs whose test score was revealed as a reward.
    """
    from mleredux.plugin.artifact import RunStore
    from mleredux_rollout.exports import Filters, export

    store, plugins = RunStore(runs_dir), catalogue(ctx)
    chosen = plugins.get("formats", to)
    if output is None:
        raise click.MissingParameter(
            ctx=ctx, param=next(option for option in ctx.command.params if option.name == "output")
        )
    files, left_out = export(
        map(store.get, runs), chosen, output, plugins, filters=Filters(**filters), options=read_options(options)
    )
    if as_json:
        print_json({"format": to, "files": [str(path) for path in files], "left_out": left_out})
        return
    for name, why in left_out.items():
        click.echo(f"Left out {name}: {why}.", err=True)
    for path in files:
        click.echo(str(path))
