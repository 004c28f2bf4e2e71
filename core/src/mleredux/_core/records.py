"""Tasks, agents, graders and sandboxes as plain records; runs in notebooks. Lists import no plugin, and little else."""

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
    """Return everything of a kind, in order of ids, without importing any of it.

    Args:
        catalogue: What is installed.
        kind: `tasks`, `techniques`, `agents`, `graders`, `sandboxes`, `formats` or `executors`. Agents come with the
            installed sandboxes that can run them, best first.
        sets: Only tasks of one of these sets; all where empty.
        category: Only tasks of this category, in capitals or not.
        technique: The tasks that this technique makes of them, in place of them.

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
    if category is not None:
        rows = [row for row in rows if str(row.get("category", "")).lower() == category.lower()]
    if kind == "agents":
        from mleredux._core.plugins.capabilities import fitting, needs_from

        installed = catalogue.capabilities()
        rows = [{**row, "sandboxes": fitting(needs_from(row), installed)} for row in rows]
    return rows if technique is None else _asked_of(catalogue, technique, rows)


def task_record(task: Task, *, obfuscated: bool = False) -> Record:
    """Return a task in full, with its description.

    Raises:
        TaskBroken: It has no such description, or it can't be read.
    """
    from mleredux._core.plugins.summaries import check_and_summarise

    return {
        **check_and_summarise("tasks", task),
        "submission": task.submission.model_dump(mode="json"),
        "thresholds": task.thresholds.model_dump() if task.thresholds else None,
        "description": task.describe(obfuscated=obfuscated),
    }


def agent_record(agent: Agent) -> Record:
    """Return an agent in full: command, options, limits, environment."""
    return agent.model_dump(mode="json", exclude={"rollout_reader", "configure", "outside"})


def _asked_of(catalogue: Catalogue, technique: str, rows: list[Record]) -> list[Record]:
    """The technique's tasks, as far as categories tell; the rest shows when one is prepared."""
    if technique not in catalogue.entries("techniques"):
        catalogue.technique(technique)  # says what there is
    summary = catalogue.entries("techniques")[technique].ref.summary
    facts = {"kind": "technique", "metric": technique, "direction": "maximize", "variants": summary["variants"]}
    return [
        {**row, **facts, "id": f"{technique}@{row['id']}", "title": f"{summary['title']}: {row['title']}"}
        for row in rows
        if not summary["categories"] or row.get("category") in summary["categories"]
    ]


def run_html(run: Run) -> str:
    """A run as a small table: what was asked, how it ended, and its report."""
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
