"""Feedback on a technique run: every component of the grade with its figures, as JSON and as text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from mleredux.plugin.artifact import Artifact, Report, Run
from mleredux.plugin.command import current
from mleredux.plugin.files import write_atomically

from mleredux_techniques.texts import rendered

JSON_FILE, TEXT_FILE = "feedback.json", "feedback.md"
_LONG = 400


def produce(run: Run) -> Iterable[Artifact]:
    """Write the feedback on a graded technique run; return nothing for other runs."""
    report = run.report
    title = None if report is None else title_of(run.spec.task)
    if report is None or title is None:
        return []
    content = {
        "run": run.id,
        "task": run.spec.task,
        "agent": run.spec.agent,
        "valid": report.valid_submission,
        "message": report.message,
        **report.details,
        "score": report.score,
        "score_name": report.details.get("score"),
    }
    write_atomically(run.path / JSON_FILE, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    write_atomically(run.path / TEXT_FILE, text(run.spec.task, title, report))
    return [
        Artifact(path=JSON_FILE, media_type="application/json", producer="techniques", title="Feedback (JSON)"),
        Artifact(path=TEXT_FILE, media_type="text/markdown", producer="techniques", title="Feedback"),
    ]


def title_of(task: str) -> str | None:
    """Return the title of the task's technique, regardless of the plugin that registers it; None for other tasks."""
    question, at, _base = task.partition("@")
    entry = current().entries("techniques").get(question.partition("+")[0]) if at else None
    return None if entry is None else str(entry.ref.summary.get("title", entry.id))


def text(task: str, title: str, report: Report) -> str:
    """Return an explanation of the grade, as Markdown."""
    known = {"score": report.score, "message": report.message, "details": report.details}
    return rendered("feedback.md.j2", task=task, title=title, cell=_cell, figure=_figure, **known)


def _cell(value: Any) -> str:
    return _short(value).replace("|", "\\|") if value is not None else "none"


def _figure(value: Any) -> str:
    if isinstance(value, dict) and "mean" in value:
        error = value.get("standard_error")
        return f"{value['mean']:.4f}" + (f" ± {error:.4f}" if error is not None else "")
    return f"({_short(value)})" if value is not None else ""


def _short(value: Any) -> str:
    """Return a value as text of limited length, with five significant digits of numbers."""
    rounded = json.loads(json.dumps(value), parse_float=lambda digits: float(f"{float(digits):.5g}"))
    text = value if isinstance(value, str) else json.dumps(rounded, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= _LONG else text[:_LONG] + "…"
