"""`mleredux logs`."""

from __future__ import annotations

import sys
import time

import click

from mleredux._core.cli.output import runs_dir_option

_POLL_SECONDS = 0.2


@click.command()
@click.argument("run", default="last")
@click.option("--build", "build", is_flag=True, help="The log of the build instead of the agent's.")
@click.option("--follow", "-f", is_flag=True, help="Go on while the run is alive.")
@click.option("--raw", is_flag=True, help="Bytes as they are, control characters included.")
@runs_dir_option
def command(run: str, build: bool, follow: bool, raw: bool, runs_dir: str | None) -> None:
    """Show the log of RUN: by id, a part of it, or `last`."""
    from mleredux._core.cli.progress import printable
    from mleredux._core.store import RunStore
    from mleredux.errors import NotFound

    found = RunStore(runs_dir).get(run)
    path = found.logs_dir / "build.log" if build else found.agent_log
    if not path.exists() and not (follow and found.alive):
        raise NotFound(f"Run {found.id} has no {path.name}.", hint=f"It is in state {found.state}.")
    position = 0
    while True:
        alive = follow and found.alive
        if path.exists():
            with path.open("rb") as file:
                file.seek(position)
                while block := file.read(1 << 16):
                    position += len(block)
                    sys.stdout.buffer.write(block if raw else printable(block).encode())
            sys.stdout.flush()
        if not alive:
            return
        time.sleep(_POLL_SECONDS)
