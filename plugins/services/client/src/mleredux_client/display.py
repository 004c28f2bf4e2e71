"""What notebooks show. Everything is escaped: names, messages and labels may be hostile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

from mleredux_client.formats import TONES, duration, facts, text
from mleredux_client.models.base import Model
from mleredux_client.models.report import Report
from mleredux_client.models.run import ExperimentRecord, RunRecord

MAX_ROWS = 100
_MAX_TEXT = 300
_MEDALS = {"gold": "🥇", "silver": "🥈", "bronze": "🥉"}
_COLOURS = {"good": "#1a7f37", "warn": "#9a6700", "bad": "#b3261e"}
_RUN_COLUMNS = ("id", "task", "agent", "seed", "status", "score", "medal", "time", "message")


def run_html(run: RunRecord) -> str:
    """A run with its report, where it has one."""
    rows = {
        "task": run.task,
        "agent": run.agent,
        "seed": run.seed,
        "sandbox": run.sandbox,
        "labels": ", ".join(f"{name}={value}" for name, value in run.labels.items()) or None,
        "waiting for": run.waiting_for,
        "cause": run.cause,
        "message": run.message,
        "score": run.score,
        "medal": run.medal,
        "time": _time_of(run),
    }
    report = report_html(run.report) if run.report else ""
    return f"<div><b>Run {_text(run.id)}</b> {_status(run.status)}{_pairs(rows)}{report}</div>"


def report_html(report: Report) -> str:
    """A report: what its fields say to show."""
    return f"<div><b>Report on {_text(report.competition_id)}</b>{_pairs(dict(facts(report)))}</div>"


def experiment_html(experiment: ExperimentRecord) -> str:
    """An experiment and its runs."""
    counts = ", ".join(f"{number} {_text(status)}" for status, number in experiment.counts.items() if number)
    title = f"<b>Experiment {_text(experiment.name or experiment.id)}</b> {counts}"
    return f"<div>{title}{runs_html(experiment.runs) if experiment.runs else ''}</div>"


def runs_html(runs: Sequence[RunRecord]) -> str:
    """Runs as a table."""
    rows = [{**run.model_dump(), "time": _time_of(run)} for run in runs[:MAX_ROWS]]
    shown = [name for name in _RUN_COLUMNS if any(row.get(name) is not None for row in rows)]
    return _table(shown, rows, len(runs))


def rows_html(rows: Sequence[Mapping[str, Any]]) -> str:
    """Anything else as a table: columns with short values."""
    shown = list(dict.fromkeys(name for row in rows[:MAX_ROWS] for name, value in row.items() if _is_short(value)))
    return _table(shown, rows[:MAX_ROWS], len(rows))


def fields_html(title: str, model: Model) -> str:
    """A title, and the fields that have a value."""
    return f"<div><b>{_text(title)}</b>{_pairs(model.model_dump(exclude={'id', 'report'}))}</div>"


def seconds_of(run: RunRecord) -> float | None:
    """From its start to its end."""
    if run.started_at is None or run.ended_at is None:
        return None
    return round((run.ended_at - run.started_at).total_seconds(), 1)


def _time_of(run: RunRecord) -> str | None:
    seconds = seconds_of(run)
    return None if seconds is None else duration(seconds)


def _table(columns: Iterable[str], rows: Sequence[Mapping[str, Any]], total: int) -> str:
    names = list(columns)
    head = "".join(f"<th>{_text(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(name, row.get(name))}</td>' for name in names)}</tr>" for row in rows)
    more = f"<p>… and {total - len(rows)} more</p>" if total > len(rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _pairs(values: Mapping[str, Any]) -> str:
    rows = "".join(
        f'<tr><th style="text-align:left">{_text(name)}</th><td style="text-align:left">{_cell(name, value)}</td></tr>'
        for name, value in values.items()
        if value not in (None, "", [], {}, ())
    )
    return f"<table><tbody>{rows}</tbody></table>"


def _cell(name: str, value: Any) -> str:
    if name == "status":
        return _status(str(value))
    if name == "medal" and value:
        return f"{_MEDALS.get(str(value), '')} {_text(value)}".strip()
    return _text(value)


def _status(status: str) -> str:
    return f'<span style="color:{_COLOURS.get(TONES.get(status, ""), "#0969da")}">{_text(status)}</span>'


def _is_short(value: Any) -> bool:
    return (
        value is None
        or isinstance(value, bool | int | float | datetime)
        or (isinstance(value, str | list) and len(value) < 200)
    )


def _text(value: Any) -> str:
    shown = text(value)
    return escape(shown if len(shown) <= _MAX_TEXT else f"{shown[:_MAX_TEXT]}…", quote=True)
