"""Exit codes of runs."""

from __future__ import annotations

from typing import Any

from mleredux.models import CAUSES, Cause

EXIT_AGENT_FAILED = 3
EXIT_ENVIRONMENT_BROKE = 4
"""The exit code if a run failed because of the environment or the task, not because of the agent."""
EXIT_CANCELLED = 130


def exit_code(record: dict[str, Any]) -> int:
    """Return the exit code of `mleredux run` for the record of one run."""
    if record["cause"] is None:
        report = record["report"]
        return EXIT_AGENT_FAILED if report is not None and not report["valid_submission"] else 0
    cause = Cause(record["cause"])
    if cause is Cause.CANCELLED:
        return EXIT_CANCELLED
    return EXIT_AGENT_FAILED if CAUSES[cause].counts else EXIT_ENVIRONMENT_BROKE
