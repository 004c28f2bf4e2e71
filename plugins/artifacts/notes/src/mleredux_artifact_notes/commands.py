"""`mleredux runs reproduce` and `mleredux runs verify`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mleredux.plugin.artifact import RunStore


@click.command("reproduce")
@click.argument("run")
@click.option("--entry", metavar="FILE", help="The file in output/code that creates the submission.")
@click.option(
    "--tolerance", type=click.FloatRange(0), default=1e-6, show_default=True, help="Maximum difference between numbers."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def reproduce_command(ctx: click.Context, run: str, entry: str | None, tolerance: float, as_json: bool) -> None:
    """Rerun the final code of a run, and check whether it creates the same submission.

    The exit code is 0 if it does (same bytes, values or score), 3 if not, and 1 after an error.
    """
    from mleredux.plugin.command import current, echo

    from mleredux_artifact_notes.reproduce import reproduce

    store: RunStore = ctx.obj
    result = reproduce(
        store.get(run),
        store,
        current(),
        entry=entry,
        tolerance=tolerance,
        progress=lambda _run, message: echo(message, err=True),
    )
    echo(json.dumps(result, indent=1) if as_json else f"{result['verdict']}: {result['message']}")
    ctx.exit(0 if result["verdict"] in ("identical", "equal", "same score") else 3)


@click.command("verify")
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def verify_command(ctx: click.Context, run: str, as_json: bool) -> None:
    """Execute the final code of a run again on permuted test data, and record the verdict on its result.

    The exit code is 0 if the result is verified, 3 if not, and 1 after an error.
    """
    from mleredux.plugin.command import current, echo
    from mleredux_grading import verify_run

    store: RunStore = ctx.obj
    graded = store.get(run)
    report = verify_run(graded, store, current(), progress=lambda message: echo(message, err=True))
    if as_json:
        click.echo(json.dumps(report.verdict.model_dump(mode="json"), indent=1))
    else:
        check = report.verdict.verification
        echo(f"{report.verdict.status}: {report.verdict.why}")
        if check is not None and check.why != report.verdict.why:
            echo(f"Executed again: {check.status}: {check.why}")
    ctx.exit(0 if report.verdict.status == "verified" else 3)
