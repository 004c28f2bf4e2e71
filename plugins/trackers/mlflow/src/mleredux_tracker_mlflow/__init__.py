"""Track runs in MLflow if a tracking URI is set. This module imports little, since it receives all events of all runs.

| modules | contents |
|---|---|
| `settings` | settings from environment variables |
| `follower`, `track_command` | the upload thread of active runs; `mleredux runs track` |
| `facts`, `files`, `masks` | a run's parameters, metrics and tags; its artifacts; masks of secrets |
| `upload`, `connection` | synchronization of an MLflow run; the connection to a tracking URI |
| `record`, `panel` | `mlflow.json` in the run's directory; links on the run's page |
| `database` | runs as an MLflow database in one file |
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from mleredux.plugin.page import Panel
    from mleredux.plugin.tracker import Event, Run

mleredux_contract = 2

URI_VARIABLES = ("MLEREDUX_MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_URI")
"""Variables of which the first one set specifies the MLflow server or store; if none is set, nothing is sent."""


@hookimpl
def mleredux_register_commands() -> list[Ref]:
    """Return the command `mleredux runs track`."""
    return [Ref("runs track", "mleredux_tracker_mlflow.track_command:command")]


@hookimpl
def mleredux_register_formats() -> list[Ref]:
    """Return the format for `mleredux export --to mlflow`."""
    return [Ref("mlflow", "mleredux_tracker_mlflow.database:MLFLOW")]


@hookimpl
def mleredux_register_pages() -> list[Panel]:
    """Return the panel that links from a run's page to its MLflow runs."""
    from mleredux.plugin.page import Panel

    return [Panel(title="MLflow", template="sent.html.j2", function="mleredux_tracker_mlflow.panel:sent")]


@hookimpl
def mleredux_run_event(run: Run, event: Event) -> None:
    """Notify the upload thread; at the end of the run, wait for it up to the time limit."""
    if any(os.environ.get(name) for name in URI_VARIABLES):
        from mleredux_tracker_mlflow.follower import follow

        follow(run, event)
