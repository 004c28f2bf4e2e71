"""Convert the server's runs to the forms that commands print."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mleredux.plugin.command import RunView

_ROW = (
    *("id", "task", "agent", "seed", "sandbox", "status", "cause", "score", "medal", "verdict"),
    *("created_at", "updated_at", "percentile", "started_at", "seconds", "paused_seconds", "tokens", "cost_usd"),
    *("message", "experiment", "arm", "project", "user", "labels"),
)
_ACTIVITIES = {
    "preparing": "preparing the data",
    "building": "building the agent's environment",
    "running": "running the agent",
    "producing": "producing artifacts",
}


def record_of(run: dict[str, Any], url: str) -> dict[str, Any]:
    """Return the record of a run that `mleredux run --json` prints: like a local one, with `url` instead of a path."""
    names = ("id", "task", "agent", "seed", "sandbox", "status", "cause", "message", "report", "created_at")
    fields = {name: run.get(name) for name in (*names, "experiment", "arm", "seconds", "paused_seconds")}
    return {**fields, "path": None, "url": f"{url}/v1/runs/{run['id']}"}


def row_of(run: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a run that `mleredux runs --json` prints: like a local one, with its owner."""
    return {name: run.get(name) for name in _ROW}


def words_of(run: dict[str, Any]) -> str:
    """Describe the progress of a run in a few words."""
    status = str(run["status"])
    activity = _ACTIVITIES.get(status, status)
    return f"{activity}: waiting for {run['waiting_for']}" if run.get("waiting_for") else activity


def view_of(run: dict[str, Any], url: str, artifacts: str) -> RunView:
    """Return a run for display.

    Args:
        url: The server's URL.
        artifacts: How to access its artifacts.
    """
    from mleredux.plugin.artifact import Report
    from mleredux.plugin.command import RunView

    report = run.get("report")
    since = run.get("started_at") or run["created_at"]
    until = run.get("ended_at") or run.get("updated_at") or run["created_at"]
    return RunView(
        task=run["task"],
        agent=run["agent"],
        status=run["status"],
        report=Report.model_validate(report, extra="ignore") if report else None,
        message=run.get("message"),
        seconds=run.get("seconds") or (datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds(),
        artifacts=artifacts,
        record=record_of(run, url),
        waiting_for=run.get("waiting_for"),
    )
