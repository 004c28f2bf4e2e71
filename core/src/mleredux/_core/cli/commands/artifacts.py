"""`mleredux artifacts`."""

from __future__ import annotations

from pathlib import Path

import click

from mleredux._core.cli.context import backend
from mleredux._core.cli.options import json_option, runs_dir_option
from mleredux._core.cli.output import print_json, print_table, safe


@click.command()
@click.argument("run", default="last")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), help="Copy the artifacts into this folder."
)
@click.option("--producer", help="Only artifacts from this producer (agent, mleredux, a plugin).")
@runs_dir_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, run: str, output: Path | None, producer: str | None, runs_dir: str | None, as_json: bool
) -> None:
    """List the artifacts of RUN, or copy them into a folder.

    RUN is an id, part of an id, or `last`.
    """
    there = backend(ctx, runs_dir=runs_dir)
    run_id = there.find(run)
    listed, left_out = there.artifacts(run_id)
    chosen = [artifact for artifact in listed if producer in (None, artifact["producer"])]
    if output is not None:
        there.download(run_id, chosen, output)
        click.echo(f"Copied {len(chosen)} artifacts to {output}.", err=True)
    if as_json:
        print_json(chosen)
    elif output is None:
        print_table(chosen, ("size", "producer", "media_type", "path"))
        for item in left_out:
            click.echo(safe(f"skipped: {item['path']}: {item['reason']}"))
        click.echo(f"in {there.location(run_id)}")
