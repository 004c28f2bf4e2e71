"""HTML of runs, experiments and other records for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mleredux.models import Model
from mleredux.models.formats import duration

from mleredux_client.markup import coloured, escaped, is_short, pairs, table
from mleredux_client.models.run import ExperimentRecord, RunRecord

MAX_ROWS = 100
_RUN_COLUMNS = ("id", "task", "agent", "seed", "status", "score", "medal", "verdict", "time", "message")


def run_html(run: RunRecord) -> str:
    """Return a run as HTML, with its report if it has one."""
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
        "verdict": run.verdict,
        "time": _time_of(run),
    }
    report = run.report._repr_html_() if run.report else ""
    return f"<div><b>Run {escaped(run.id)}</b> {coloured(run.status)}{pairs(rows)}{report}</div>"


def experiment_html(experiment: ExperimentRecord) -> str:
    """Return an experiment with its runs as HTML."""
    counts = ", ".join(f"{number} {escaped(state)}" for state, number in experiment.counts.items() if number)
    title = f"<b>Experiment {escaped(experiment.name or experiment.id)}</b> {counts}"
    return f"<div>{title}{runs_html(experiment.runs) if experiment.runs else ''}</div>"


def runs_html(runs: Sequence[RunRecord]) -> str:
    """Return runs as an HTML table."""
    rows = [{**run.model_dump(), "time": _time_of(run)} for run in runs[:MAX_ROWS]]
    shown = [name for name in _RUN_COLUMNS if any(row.get(name) is not None for row in rows)]
    return table(shown, rows, len(runs))


def rows_html(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return any other records as an HTML table, with the columns that have short values."""
    shown = list(dict.fromkeys(name for row in rows[:MAX_ROWS] for name, value in row.items() if is_short(value)))
    return table(shown, rows[:MAX_ROWS], len(rows))


def fields_html(title: str, model: Model) -> str:
    """Return HTML with a title and the fields that have a value."""
    return f"<div><b>{escaped(title)}</b>{pairs(model.model_dump(exclude={'id', 'report'}))}</div>"


def _time_of(run: RunRecord) -> str | None:
    if run.seconds is None:
        return None
    working = f", {duration(run.seconds - run.paused_seconds)} working" if run.paused_seconds else ""
    return f"{duration(run.seconds)}{working}"
