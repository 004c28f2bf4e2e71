"""`mleredux runs conduct`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mleredux.plugin.artifact import RunStore


@click.command("conduct")
@click.argument("runs", nargs=-1, required=True)
@click.option(
    "--references",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar="MLEREDUX_REFERENCES",
    help="Folder of reference kernels to compare the code with.",
)
@click.option("--judge", "model", envvar="MLEREDUX_JUDGE_MODEL", help="Also judge with this gateway model.")
@click.option(
    "--judge-cost",
    "cost",
    type=click.FloatRange(min=0, min_open=True),
    envvar="MLEREDUX_JUDGE_COST",
    metavar="USD",
    help="Budget of the judge for each run.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(
    store: RunStore,
    runs: tuple[str, ...],
    references: Path | None,
    model: str | None,
    cost: float | None,
    as_json: bool,
) -> None:
    """Check runs for rule violations; the results are lines to review, not verdicts."""
    from mleredux.plugin.artifact import add_artifact
    from mleredux.plugin.command import echo

    from mleredux_audit_conduct.check import as_markdown, check, write

    all_checked = []
    for name in runs:
        run = store.get(name)
        checked = check(run, references=references, model=model, cost=cost)
        for artifact in write(run, checked):
            add_artifact(run, artifact)
        all_checked.append(checked)
    if as_json:
        click.echo(json.dumps(all_checked[0] if len(runs) == 1 else all_checked, indent=1))
    else:
        echo("\n".join(as_markdown(checked) for checked in all_checked).removesuffix("\n"))
