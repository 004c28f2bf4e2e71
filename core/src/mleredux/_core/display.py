"""What notebooks show of a local run."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from mleredux.models.formats import facts

if TYPE_CHECKING:
    from mleredux._core.store import Run


def run_html(run: Run) -> str:
    """A run as a small table: what was asked, how it ended, and its report."""
    spec, report = run.spec, run.report
    shown = {
        "task": spec.task,
        "agent": spec.agent,
        "seed": str(spec.seed),
        "experiment": " · ".join(filter(None, (spec.experiment, spec.arm))),
        "message": run.message or "",
        **(dict(facts(report)) if report else {}),
        "path": str(run.path),
    }
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in shown.items() if text)
    return f"<div><b>Run {escape(run.id)}</b> {escape(str(run.state))}<table>{rows}</table></div>"
