"""The steps of a rollout, in pages, with filters and search; updated while the run is active."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mleredux.models.formats import counted
from mleredux.plugin.artifact import Run
from mleredux_artifact_reports.shared import StepView, cpus, step_view, tools_of, unix_time
from mleredux_rollout import Step

from mleredux_view.pages.run import about
from mleredux_view.stepfile import StepFile
from mleredux_view.texts import money
from mleredux_view.trace import trace_of
from mleredux_view.tree import drawn
from mleredux_view.visit import Shown, Visit, page

_PER_PAGE = 50
_TOOLS = 40
_SAMPLED = 60.0
"""Maximum interval between samples of resources, in seconds."""


@page("/runs/{run_id}/steps")
def steps(visit: Visit) -> Shown:
    """Show one page of the matching steps."""
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
    wanted = _PER_PAGE * max(visit.count("page", 1), visit.count("step", 0) // _PER_PAGE + 1)
    trace.wait(None if values["open"] or visit.static or visit.text("whole") else wanted + 1)
    complete = trace.complete
    numbers = trace.numbers(**chosen) if values["open"] else range(len(trace))
    pages = max(1, -(-len(numbers) // _PER_PAGE))
    at = min(visit.count("page", 1) or 1, pages)
    if step := visit.count("step", 0):
        at = min(pages, (step - 1) // _PER_PAGE + 1)
    resources = _resources(run)
    shown = [(number, _view(trace, number, resources)) for number in numbers[(at - 1) * _PER_PAGE : at * _PER_PAGE]]
    return Shown(
        "steps.html.j2",
        {**values, "steps": [view for _, view in shown if view], "unreadable": sum(view is None for _, view in shown),
         "complete": complete, "total": len(numbers), "all": len(trace),
         "page": at, "pages": pages, "per_page": _PER_PAGE,
         "tools": trace.tools.most_common(_TOOLS), "sources": trace.sources, "cost": money(trace.cost_usd),
         "tools_drawn": tools_of(trace.acted[:]) if complete and at == 1 and not values["open"] else None,
         "tree": drawn(trace.nodes[:]), "to": _address(visit)},
    )  # fmt: skip


def _view(trace: StepFile, number: int, resources: Callable[[Step], list[tuple[str, str]]]) -> StepView | None:
    """Return a step for display, with its cost and the resources that the agent used at the time."""
    step = trace.step(number)
    if step is None:
        return None
    view, used, metrics = step_view(step), resources(step), step.metrics
    tokens = (metrics.prompt_tokens or 0) + (metrics.completion_tokens or 0) if metrics else 0
    costs = [counted(tokens, "token") * (tokens > 0), money(metrics.cost_usd) if metrics and metrics.cost_usd else ""]
    beside = " · ".join(filter(None, [*costs, *(value for _, value in used[:1])]))
    return replace(view, facts=[*view.facts, *used], chips=[*view.chips, *([("use", beside)] if beside else [])])


def _resources(run: Run) -> Callable[[Step], list[tuple[str, str]]]:
    """Return a function that returns the memory and the CPUs in use at the time of a step, if they were sampled."""
    samples, began = run.resources(), run.log.state.agent_started
    times, in_use = [sample.seconds for sample in samples], dict(cpus(samples))

    def resources_of(step: Step) -> list[tuple[str, str]]:
        after = (unix_time(step.timestamp) or 0.0) - (began or 0.0)
        if times and times[0] <= after <= times[-1] + _SAMPLED:
            sample = samples[bisect.bisect_right(times, after) - 1]
            known = [("memory", f"{sample.memory_mb:,.0f} MB")] if sample.memory_mb is not None else []
            return [*known, *([("CPUs", f"{in_use[sample.seconds]:.1f}")] if sample.seconds in in_use else [])]
        return []

    return resources_of


def _address(visit: Visit) -> Any:
    filters = {name: visit.text(name) for name in ("source", "tool", "error", "q")}
    return lambda page: visit.link("runs", visit.parts["run_id"], "steps", **filters, page=page if page > 1 else "")
