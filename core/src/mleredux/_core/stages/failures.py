"""Why a stage failed: from an exception to a cause of the short list."""

from __future__ import annotations

from dataclasses import dataclass

from mleredux.errors import (
    AgentBroken,
    BuildFailed,
    Cancelled,
    DataError,
    MlereduxError,
    NotApplicable,
    NotFound,
    PluginError,
    TaskBroken,
    disk_full,
    one_line,
)
from mleredux.models import Cause


@dataclass
class Failure:
    """What ended a run before its time.

    Attributes:
        message: One sentence for the user.
    """

    cause: Cause
    message: str


def failure_of(error: Exception) -> Failure:
    """Cause and sentence of an exception that ended a stage."""
    if isinstance(error, Cancelled):
        return Failure(Cause.CANCELLED, str(error))
    by_agent = isinstance(error, BuildFailed) and error.by_agent  # its own limit of disk, too
    if not by_agent and (full := disk_full(error)):
        return Failure(Cause.ENVIRONMENT_BROKE, full)
    if isinstance(error, AgentBroken) or by_agent:
        return Failure(Cause.AGENT_CRASHED, str(error))
    if isinstance(error, (TaskBroken, DataError, NotApplicable, NotFound, PluginError)):
        return Failure(Cause.TASK_BROKEN, str(error))
    message = str(error) if isinstance(error, MlereduxError) else one_line(error)
    return Failure(Cause.ENVIRONMENT_BROKE, message)
