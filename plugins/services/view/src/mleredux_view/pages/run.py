"""One run: its state, result, curve, limits and signals, as on the report's page; updated while the run is active."""

from __future__ import annotations

from typing import Any

from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import Run
from mleredux.plugin.command import current
from mleredux_artifact_reports.shared import page_of

from mleredux_view.charts import memory_chart, score_chart
from mleredux_view.pages.failures import failures_of, place_of
from mleredux_view.plugins import panels_of
from mleredux_view.visit import Shown, Visit, page


@page("/runs/{run_id}")
def overview(visit: Visit) -> Shown:
    """Show the content of the report, from the run's current files."""
    run = visit.run
    manifest = run.manifest
    content = page_of(run, manifest.artifacts if manifest else (), with_rollout=False)
    error = next(iter(failures_of(run.path, str(len(run.events()))) if run.state.final else ()), None)
    return Shown(
        "run.html.j2",
        {
            **about(run, "overview", content.title),
            "page": content,
            "chart": score_chart(run.scores, content.report, run.outcome.seconds if run.outcome else 0.0)
            if content.report
            else None,
            "resources": memory_chart(run.resources()),
            "log_link": visit.link("runs", run.id, "log", at="error"),
            "error": error,
            "error_link": place_of(visit.link, run.id, error["where"]) if error else "",
            "panels": panels_of(visit, run),
        },
    )


def about(run: Run, tab: str, title: str | None = None) -> dict[str, Any]:
    """Return the values for the header of every page of a run."""
    return {"run": run, "tab": tab, "final": run.state.final, "title": title or _title(run.spec.task)}


def _title(task: str) -> str:
    try:
        return current().task(task).title
    except MlereduxError:  # its plugin may be uninstalled
        return task
