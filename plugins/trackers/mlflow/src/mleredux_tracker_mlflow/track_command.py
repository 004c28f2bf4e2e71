"""`mleredux runs track`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from mleredux.errors import MlereduxError
from mleredux.plugin.command import json_option, print_json

if TYPE_CHECKING:
    from mleredux.plugin.artifact import RunStore
    from mleredux.plugin.tracker import Run

    from mleredux_tracker_mlflow.upload import Sender

_FAILURES = 2
"""Number of consecutive runs rejected by MLflow after which to stop."""


@click.command("track")
@click.argument("runs", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Send all finished runs.")
@click.option("--to", "uri", metavar="URI", help="MLflow tracking URI. [env: MLFLOW_TRACKING_URI]")
@click.option("--experiment", metavar="NAME", help="MLflow experiment.  [default: one per task]")
@json_option
@click.pass_context
def command(
    ctx: click.Context, runs: tuple[str, ...], everything: bool, uri: str | None, experiment: str | None, as_json: bool
) -> None:
    """Send finished runs to MLflow; repeated calls send only missing data.

    RUNS are run ids, parts of ids, or `last`.
    """
    from mleredux_tracker_mlflow.settings import read_settings

    store: RunStore = ctx.obj
    if not runs and not everything:
        raise click.UsageError("Specify runs, or pass --all.")
    settings = read_settings(uri=uri, experiment=experiment)
    named = {run.id: run for run in map(store.get, runs)}
    others = sorted(set(store.ids()) - set(named)) if everything else []
    from mleredux_tracker_mlflow.upload import (  # imports MLflow, which takes seconds: checked after the arguments
        NotSent,
        Sender,
    )

    sender, rows, failed = Sender(settings), [], 0
    for name in (*named, *others):
        try:
            row = _send(sender, named.get(name) or store.get(name), quietly=name not in named)
            failed = 0
        except MlereduxError as error:
            failed = failed + 1 if isinstance(error, NotSent) else 0
            if failed == _FAILURES:  # the next runs would time out with the same message
                raise
            row = {"id": name, "result": "failed", "message": str(error)}
        if row is None:
            continue
        rows.append(row)
        if not as_json:
            remark = f": {row['message']}" if "message" in row else ""
            click.echo(f"{name}  {row['result']}{remark}")
    if as_json:
        print_json(rows)
    elif not rows:
        click.echo(f"There are no finished runs in {store.path}.")
    ctx.exit(0 if all(row["result"] in ("sent", "up to date") for row in rows) else 1)


def _send(sender: Sender, run: Run, *, quietly: bool) -> dict[str, Any] | None:
    """Send a run and return the outcome; None if it is unfinished and was not named."""
    if run.alive or not run.state.final:
        return None if quietly else {"id": run.id, "result": "left out", "message": "The run is not finished."}
    present, anything = sender.send(run)
    row = {"id": run.id, "result": "sent" if anything else "up to date"}
    return {**row, "mlflow_run_id": present.run_id, "experiment_id": present.experiment_id}
