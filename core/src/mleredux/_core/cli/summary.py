"""The table at the end: score, medal, above median, time, where the artifacts are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mleredux._core.cli.backend import RunView
from mleredux._core.cli.output import safe
from mleredux._core.models import Report

STYLES = {"done": "green", "failed": "red", "timed_out": "yellow", "cancelled": "yellow"}

_COLUMNS = ("task", "agent", "status", "score", "medal", "above median", "percentile", "time", "artifacts", "report")

_BELOW = ("above median", "percentile", "artifacts", "report")
_WIDE = 120
"""Columns of a terminal below which `_BELOW` is left out of the table of several runs."""


def closing_table(runs: Sequence[RunView]) -> None:
    """Print the table: facts below one another for one run, a row each for several."""
    console, narrow = Console(), False
    if len(runs) == 1:
        table = Table(show_header=False, title=Text(safe(f"{runs[0].agent} on {runs[0].task}"), "bold"))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in _facts(runs[0]).items():
            table.add_row(name, value)
    else:
        table = Table(header_style="bold")
        rows = [{"task": Text(safe(run.task)), "agent": Text(safe(run.agent)), **_facts(run)} for run in runs]
        narrow = console.width < _WIDE
        names = [name for name in _COLUMNS if any(name in row for row in rows) and not (narrow and name in _BELOW)]
        for name in names:
            table.add_column(name, overflow="fold", no_wrap=name not in ("artifacts", "report"))
        for row in rows:
            table.add_row(*(row.get(name, "") for name in names))
    console.print(table)
    if narrow:
        for run in runs:
            console.print(Text(safe(f"{run.task} · {run.agent}: {run.artifacts}"), style="dim"))
    for run in runs:
        for sentence in filter(None, (run.message, run.report.message if run.report else None)):
            console.print(Text(safe(f"{run.task}: {sentence}"), style="yellow"))


def _facts(run: RunView) -> dict[str, Any]:
    report = run.report
    facts: dict[str, Any] = {"status": Text(run.status, style=STYLES.get(run.status, "")), "score": _score(report)}
    if report is None or report.gold_threshold is not None:  # else nobody was compared with
        facts["medal"] = _medal(report)
        median = "-" if report is None or report.score is None else "yes" if report.above_median else "no"
        facts["above median"] = median
    if report is None or report.percentile is not None:
        facts["percentile"] = "-" if report is None else f"{report.percentile:.0f} %"
    facts |= {"time": _duration(run.seconds), "artifacts": Text(run.artifacts)}
    return {**facts, "report": Text(run.page)} if run.page else facts


def _score(report: Report | None) -> str:
    if report is None or report.score is None:
        return "-"
    return f"{report.score:.5f} ({safe(report.metric)})"


def _medal(report: Report | None) -> Any:
    if report is None or report.gold_threshold is None:
        return "-"
    styles = {"gold": "bold yellow", "silver": "bold white", "bronze": "bold dark_orange3"}
    return Text(report.medal, style=styles[report.medal]) if report.medal else "none"


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
