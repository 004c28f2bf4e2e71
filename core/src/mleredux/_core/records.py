"""Tasks, agents, graders and sandboxes as plain records, and runs in notebooks. Listing imports no plugins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mleredux._core.plugins import Catalogue
    from mleredux._core.store import Run
    from mleredux.models import Agent, Task

Record = dict[str, Any]


def listed(
    catalogue: Catalogue,
    kind: str,
    *,
    sets: Iterable[str] = (),
    category: str | None = None,
    technique: str | None = None,
) -> list[Record]:
    """Return all objects of a kind, sorted by id, without importing any of them.

    Args:
        catalogue: The installed plugins.
        kind: `tasks`, `techniques`, `agents`, `graders`, `sandboxes`, `formats` or `executors`. Each agent is listed
        with the installed sandboxes that can run it, best first.
        sets: Only tasks in one of these sets; empty: all tasks.
        category: Only tasks of this category; case is ignored.
        technique: Return the tasks that this technique derives from them instead.

    Raises:
        NotFound: There is no such set or technique.
    """
    sets = tuple(sets)
    chosen = set(catalogue.task_names((), sets)) if sets else None
    rows = [
        {**entry.ref.summary, "id": entry.id, "plugin": entry.plugin.name}
        for entry in catalogue.entries(kind).values()
        if chosen is None or entry.id in chosen
    ]
    for name in (name for name in sorted(chosen or ()) if "@" in name):
        from mleredux._core.plugins.summaries import check_and_summarise

        plugin = catalogue.entries("techniques")[name.partition("@")[0].partition("+")[0]].plugin.name
        rows.append({**check_and_summarise("tasks", catalogue.task(name)), "plugin": plugin})
    if category is not None:
        rows = [row for row in rows if str(row.get("category", "")).lower() == category.lower()]
    if kind == "agents":
        from mleredux._core.plugins.capabilities import fitting, needs_from

        installed = catalogue.capabilities()
        rows = [{**row, "sandboxes": fitting(needs_from(row), installed)} for row in rows]
    return rows if technique is None else _applicable_tasks(catalogue, technique, rows)


def task_record(task: Task, *, obfuscated: bool = False) -> Record:
    """Return the full record of a task, with its description.

    Args:
        task: The task.
        obfuscated: Whether to include the description without the competition's name and story.

    Raises:
        TaskBroken: The task has no such description, or it can't be read.
    """
    from mleredux._core.plugins.summaries import check_and_summarise

    return {
        **check_and_summarise("tasks", task),
        "submission": task.submission.model_dump(mode="json"),
        "thresholds": task.thresholds.model_dump() if task.thresholds else None,
        "description": task.describe(obfuscated=obfuscated),
    }


def agent_record(agent: Agent) -> Record:
    """Return the full record of an agent: command, options, limits, environment."""
    return agent.model_dump(mode="json", exclude={"rollout_reader", "configure", "outside"})


def _applicable_tasks(catalogue: Catalogue, technique: str, rows: list[Record]) -> list[Record]:
    """Return the tasks to which the technique applies, judged by their categories alone; preparing a task may still
    rule it out.
    """
    if technique not in catalogue.entries("techniques"):
        catalogue.technique(technique)  # lists the available techniques
    summary = catalogue.entries("techniques")[technique].ref.summary
    facts = {"kind": "technique", "metric": technique, "direction": "maximize", "variants": summary["variants"]}
    return [
        {**row, **facts, "id": f"{technique}@{row['id']}", "title": f"{summary['title']}: {row['title']}"}
        for row in rows
        if not summary["categories"] or row.get("category") in summary["categories"]
    ]


def run_html(run: Run) -> str:
    """Return a run as a small HTML table: its request, how it ended, and its report."""
    from html import escape

    from mleredux.models.formats import facts

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
