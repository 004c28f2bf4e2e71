"""`mleredux runs release-grades`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from mleredux import MlereduxError, Run
from mleredux.plugin.command import DataStore, backend, catalogue, print_results
from mleredux.plugin.host import Pipeline


@click.command("release-grades")
@click.argument("runs", nargs=-1)
@click.pass_context
def command(ctx: click.Context, runs: tuple[str, ...]) -> None:
    """Grade runs of users whose feedback was delayed (`mleredux human start --feedback later`).

    Without RUNS, grade all runs that are due.
    """
    store: Any = ctx.obj
    there = backend(ctx, runs_dir=str(store.path))
    held = [store.get(name) for name in runs] or [run for run in _waiting(store) if not run.held]
    for run in held:
        if run.hold_end is None or run.state.final:
            raise MlereduxError(f"Run {run.id} needs no release.", hint="`mleredux runs` lists runs with their status.")
        if run.alive:
            raise MlereduxError(f"Run {run.id} is still being worked on.", hint="Release it when it has ended.")
    for run in held:
        run.release()
        Pipeline(store, catalogue(ctx), DataStore(run.spec.data_dir)).execute([run])
    if held:
        print_results([there.view(there.find(run.id)) for run in held])
    else:
        click.echo("No run is due.")


def _waiting(store: Any) -> list[Run]:
    """Return runs that are held back and not in progress."""
    rows = store.rows(status="grading")
    runs = [Run(Path(store.path) / row["id"]) for row in rows]
    return [run for run in runs if run.hold_end is not None and not run.alive]
