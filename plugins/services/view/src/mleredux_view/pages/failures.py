"""Failures, grouped by cause and by the relevant line, as determined by `mleredux runs failures`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import CAUSES, Cause
from mleredux.plugin.command import Record

from mleredux_view.source import RunQuery, Source
from mleredux_view.visit import Shown, Visit, page

_RUNS = 500
_SHOWN = 12
_ENDED = frozenset({"done", "failed", "timed_out", "damaged"})
_PARTICULARS = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?|(?<=['\"/])[^'\"]*(?=['\"])")
_LOG, _STEP = re.compile(r"(logs/[^:]+):(\d+)"), re.compile(r"steps? (\d+)")


class Failed(NamedTuple):
    """A run that failed or fell short, and the URL of the evidence."""

    row: Record
    place: str


@dataclass
class Group:
    """Runs with similar failures, the newest first."""

    cause: str
    meaning: str
    counts: bool
    line: str
    runs: list[Failed] = field(default_factory=list)


@page("/failures")
def failures(visit: Visit) -> Shown:
    """Group the newest runs that failed or fell short."""
    request = RunQuery(search=visit.text("q")[:500], wanted={"status": _ENDED}, limit=_RUNS, facets=())
    table = visit.source.runs(request)
    groups = sorted(_grouped(visit, table.rows), key=lambda group: -len(group.runs))
    failed = sum(len(group.runs) for group in groups)
    values = {"groups": groups, "total": table.total, "most": _SHOWN, "read": len(table.rows), "found": failed}
    return Shown("failures.html.j2", values)


def _grouped(visit: Visit, rows: Iterable[Record]) -> Iterable[Group]:
    groups: dict[tuple[str, str], Group] = {}
    for row in rows:
        if (primary := _primary(visit.source, row)) is None:
            continue
        key = (primary["category"], _PARTICULARS.sub("…", primary["line"]))
        if key not in groups:
            policy = CAUSES.get(Cause(row["cause"])) if row["cause"] in set(Cause) else None
            groups[key] = Group(primary["category"], primary["title"], policy is None or policy.counts, primary["line"])
        groups[key].runs.append(Failed(row, place_of(visit.link, row["id"], primary["where"])))
    return groups.values()


def _primary(source: Source, row: Record) -> dict[str, Any] | None:
    """Return the primary failure of a run; if no plugin determines one, its cause, unless it ended well."""
    try:
        findings = failures_of(source.run(row["id"]).path, str(row["updated_at"]))
    except MlereduxError:
        findings = ()
    if findings or row["status"] == "done":
        return findings[0] if findings else None
    cause = row["cause"] or row["status"]
    meaning = CAUSES[Cause(cause)].meaning if cause in set(Cause) else ""
    return {"category": cause, "title": meaning, "line": (row["message"] or "")[:300], "where": ""}


@lru_cache(maxsize=20_000)
def failures_of(path: Path, _changed: str) -> tuple[dict[str, Any], ...]:
    """Return why a run fell short by the rules of mleredux-experiments, if installed; cached until the run changes."""
    if find_spec("mleredux_experiments") is None:
        return ()
    from mleredux_experiments import shared

    return tuple(finding.record() for finding in shared.failures_of(path))


def place_of(link: Callable[..., str], run_id: str, where: str) -> str:
    """Return the URL of the line, step or version that shows a failure, or else of the run."""
    if match := _LOG.fullmatch(where):
        other = {} if match[1] == "logs/agent.log" else {"name": match[1]}
        return link("runs", run_id, "log", **other, line=match[2])
    if match := _STEP.match(where):
        return link("runs", run_id, "steps", step=match[1])
    return link("runs", run_id, "versions") if where.startswith("version") else link("runs", run_id)
