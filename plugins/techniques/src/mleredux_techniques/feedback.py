"""Feedback on a technique run: every component of the grade with its figures, as JSON and as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mleredux.plugin.artifact import Artifact
from mleredux.plugin.command import current
from mleredux.plugin.files import write_atomically

if TYPE_CHECKING:
    from mleredux.plugin.artifact import Report, Run

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
    return "\n".join(_lines(task, title, report)) + "\n"


def _lines(task: str, title: str, report: Report) -> Iterator[str]:
    details = report.details
    named = f" ({report.details['score']})" if "score" in report.details else ""
    yield f"# {task}: {'no score' if report.score is None else f'{report.score:.3f}{named}'}\n"
    yield f"{title}.\n"
    if report.score is None or not {"facts", "efficacy"} <= set(details):
        yield report.message or "There was no document to grade."
        return
    facts, efficacy = details["facts"], details["efficacy"]
    yield f"{details['formula']}.\n"
    spread = "" if efficacy["uncertainty"] is None else f" ± {efficacy['uncertainty']:.3f}"
    told = "not significant on this data" if efficacy["score"] is None else f"{efficacy['score']:.3f}{spread}"
    yield f"- facts: {facts['score']:.3f}\n- efficacy: {told}"
    if details.get("sample"):
        yield f"- {details['sample']}"
    yield "\n## Facts\n"
    yield "| component | score | weight | given | true |\n|---|---|---|---|---|"
    for part in facts["parts"]:
        value = part["value"] if isinstance(part["value"], dict) else {"given": part["value"]}
        shown = [_cell(value.get("given")), _cell(value.get("true"))]
        yield f"| {part['name']} | {part['score']:.2f} | {part['weight']:.2f} | {' | '.join(shown)} |"
    yield ""
    yield from (f"- **{part['name']}**: {part['explanation']}" for part in facts["parts"])
    yield "\n## Efficacy\n"
    yield "Recommended:\n"
    yield from (f"- {line}" for line in details["recommendation"])
    yield ""
    for part in efficacy["parts"]:
        yield f"- **{part['name']}** {_figure(part['value'])}: {part['explanation']}"
    if not efficacy["parts"]:
        yield "The recommendation was not executed: this data has no features to train models on."


def _cell(value: Any) -> str:
    return _short(value).replace("|", "\\|") if value is not None else "none"


def _figure(value: Any) -> str:
    if isinstance(value, dict) and "mean" in value:
        error = value.get("standard_error")
        return f"{value['mean']:.4f}" + (f" ± {error:.4f}" if error is not None else "")
    return f"({_short(value)})" if value is not None else ""


def _short(value: Any) -> str:
    told = value if isinstance(value, str) else json.dumps(_rounded(value), ensure_ascii=False)
    told = " ".join(told.split())
    return told if len(told) <= _LONG else told[:_LONG] + "…"


def _rounded(value: Any) -> Any:
    """Format a number with five significant digits."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value
