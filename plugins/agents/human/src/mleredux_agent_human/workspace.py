"""The run that a folder belongs to, for commands issued inside the folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from mleredux import MlereduxError, Run
from mleredux.plugin.command import backend
from mleredux_agentkit.wire import NoSession, request


def find_run(ctx: click.Context, name: str | None, runs_dir: str | None) -> Run:
    """Return the run with a name, or that of the current folder.

    Raises:
        MlereduxError: No such run was found.
    """
    if name is not None:
        there = backend(ctx, runs_dir=runs_dir)
        return Run(Path(there.location(there.find(name))))
    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        if (folder / "run.json").is_file():
            return Run(folder)
    raise MlereduxError("This folder is not part of a run.", hint="Specify the run with --run (or `--run last`).")


def send(run: Run, do: str, file: Path | None = None) -> dict[str, Any]:
    """Send a request to the run's session, and return its response.

    Raises:
        MlereduxError: The run has no session, or the file can't be read.
    """
    try:
        return request(run.output_dir, do, file)
    except NoSession:
        raise MlereduxError(
            f"Run {run.id} has no open session.",
            hint=f"`mleredux human start --attach {run.id}` reopens a closed one.",
        ) from None
    except OSError as error:
        raise MlereduxError(f"{file} can't be read: {error.strerror}.", hint="Choose an existing file.") from None
