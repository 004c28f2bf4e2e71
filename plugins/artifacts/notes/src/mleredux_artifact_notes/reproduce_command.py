"""`mleredux runs reproduce`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mleredux.plugin.artifact import RunStore


@click.command("reproduce")
@click.argument("run")
@click.option("--entry", metavar="FILE", help="The file of output/code that makes the submission.")
@click.option("--tolerance", type=float, default=1e-6, show_default=True, help="By how much numbers may differ.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, run: str, entry: str | None, tolerance: float, as_json: bool) -> None:
    """Run the final code of a run again, and see whether it makes the same submission.

    Exit code 0 where it does (the same bytes, values or score), 1 where not.
    """
    from mleredux.plugin.command import current

    from mleredux_artifact_notes.reproduce import reproduce

    store: RunStore = ctx.obj
    result = reproduce(
        store.get(run),
        store,
        current(),
        entry=entry,
        tolerance=tolerance,
        progress=lambda _run, message: click.echo(message, err=True),
    )
    click.echo(json.dumps(result, indent=1) if as_json else f"{result['verdict']}: {result['message']}")
    ctx.exit(0 if result["verdict"] in ("identical", "equal", "same score") else 1)
