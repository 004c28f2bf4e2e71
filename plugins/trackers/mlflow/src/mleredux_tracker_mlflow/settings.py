"""Settings from environment variables."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

from mleredux.errors import MlereduxError
from mleredux.models.formats import plain

from mleredux_tracker_mlflow import URI_VARIABLES

EXPERIMENT_VARIABLE = "MLEREDUX_MLFLOW_EXPERIMENT"
ARTIFACT_VARIABLE = "MLEREDUX_MLFLOW_ARTIFACT_MB"
WAIT_VARIABLE = "MLEREDUX_MLFLOW_WAIT"
INTERVAL_VARIABLE = "MLEREDUX_MLFLOW_INTERVAL"


@dataclass(frozen=True)
class Settings:
    """The destination of runs, and the amount of data to send.

    Attributes:
        uri: MLflow's tracking URI.
        experiment: Name of the experiment; None: the task's id.
        artifact_mb: Maximum size of a file in MB; 0 sends no files.
        wait: Maximum number of seconds that the end of a run waits for MLflow.
        interval: Seconds between two uploads of an active run.
        record: Whether a run's directory records the sent data, so that later calls send only the rest.
    """

    uri: str
    experiment: str | None = None
    artifact_mb: float = 10.0
    wait: float = 30.0
    interval: float = 10.0
    record: bool = True


def tracking_uri(environment: Mapping[str, str] | None = None) -> str | None:
    """Return the configured tracking URI, if any."""
    known = os.environ if environment is None else environment
    return next((known[name] for name in URI_VARIABLES if known.get(name)), None)


def read_settings(*, uri: str | None = None, experiment: str | None = None) -> Settings:
    """Read the settings from the environment; arguments take precedence.

    Raises:
        MlereduxError: No tracking URI is set, or a number is invalid.
    """
    where = uri or tracking_uri()
    if not where:
        raise MlereduxError("No MLflow tracking URI is set.", hint="Pass --to URI, or set MLFLOW_TRACKING_URI.")
    return Settings(
        uri=where,
        experiment=experiment or os.environ.get(EXPERIMENT_VARIABLE) or None,
        artifact_mb=_number(ARTIFACT_VARIABLE, Settings.artifact_mb),
        wait=_number(WAIT_VARIABLE, Settings.wait),
        interval=max(1.0, _number(INTERVAL_VARIABLE, Settings.interval)),
    )


def _number(variable: str, default: float) -> float:
    text = os.environ.get(variable)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise MlereduxError(
            f"{variable}={text!r} is not a non-negative number.", hint=f"Example: {variable}={plain(default)}."
        )
    return value
