"""Follows runs in MLflow, where a tracking URI is set. This module stays light: it sees every event of every run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from mleredux.plugin.tracker import Event, Run

mleredux_contract = 2

URI_VARIABLES = ("MLEREDUX_MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_URI")
"""The first that is set says where MLflow is; without one, nothing is sent."""


@hookimpl
def mleredux_register_commands() -> list[Ref]:
    """`mleredux runs track`."""
    return [Ref("runs track", "mleredux_tracker_mlflow.track_command:command")]


@hookimpl
def mleredux_run_event(run: Run, event: Event) -> None:
    """Let the thread that sends know; at the run's end, wait for it, but never longer than the limit."""
    if any(os.environ.get(name) for name in URI_VARIABLES):
        from mleredux_tracker_mlflow.follower import follow

        follow(run, event)
