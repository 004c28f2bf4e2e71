"""The steps of a rollout, in pages, with filters and search; live from what there is while the run goes on."""

from __future__ import annotations

from typing import Any

from mleredux_artifact_reports.shared import StepView, step_view

from mleredux_view.pages.run import about
from mleredux_view.stepfile import StepFile
from mleredux_view.texts import money
from mleredux_view.trace import trace_of
from mleredux_view.tree import drawn
from mleredux_view.visit import Shown, Visit, page

_PER_PAGE = 50
_TOOLS = 40


@page("/runs/{run_id}/steps")
def steps(visit: Visit) -> Shown:
    """One page of the steps that match."""
    run = visit.run
    trace = trace_of(run)
    chosen: dict[str, Any] = {
        "source": visit.text("source"),
        "tool": visit.text("tool"),
        "error": visit.text("error") == "1",
        "search": visit.text("q")[:200],
    }
    values: dict[str, Any] = {**about(run, "steps"), "trace": trace, "chosen": chosen, "open": any(chosen.values())}
    if trace is None:
        return Shown("steps.html.j2", values)
    asked = _PER_PAGE * max(visit.count("page", 1), visit.count("step", 0) // _PER_PAGE + 1)
    trace.wait(None if values["open"] or visit.static else asked + 1)
    complete = trace.complete
    numbers = trace.numbers(**chosen) if values["open"] else range(len(trace))
    pages = max(1, -(-len(numbers) // _PER_PAGE))
    at = min(visit.count("page", 1) or 1, pages)
    if step := visit.count("step", 0):
        at = min(pages, (step - 1) // _PER_PAGE + 1)
    shown = [(number, _view(trace, number)) for number in numbers[(at - 1) * _PER_PAGE : at * _PER_PAGE]]
    return Shown(
        "steps.html.j2",
        {**values, "steps": [view for _, view in shown if view], "unreadable": sum(view is None for _, view in shown),
         "complete": complete, "total": len(numbers), "all": len(trace),
         "page": at, "pages": pages, "per_page": _PER_PAGE,
         "tools": trace.tools.most_common(_TOOLS), "sources": trace.sources, "cost": money(trace.cost_usd),
         "tree": drawn(trace.nodes[:]), "to": _address(visit)},
    )  # fmt: skip


def _view(trace: StepFile, number: int) -> StepView | None:
    step = trace.step(number)
    return step_view(step) if step is not None else None


def _address(visit: Visit) -> Any:
    asked = {name: visit.text(name) for name in ("source", "tool", "error", "q")}
    return lambda page: visit.link("runs", visit.parts["run_id"], "steps", **asked, page=page if page > 1 else "")
