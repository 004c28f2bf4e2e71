"""Failures, grouped by cause and by the line that matters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import CAUSES, Cause, Run
from mleredux.plugin.command import Record
from mleredux_artifact_reports.shared import excerpt, terminal_text

from mleredux_view.source import RunQuery, Source
from mleredux_view.visit import Shown, Visit, page

_RUNS = 2_000
_SHOWN = 12
_LOG_BYTES = 64 << 10
_ERROR = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Killed)\b.*$", re.MULTILINE)
_PARTICULARS = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?|(?<=['\"/])[^'\"]*(?=['\"])")


@dataclass
class Group:
    """Runs that failed alike, newest first."""

    cause: str
    meaning: str
    counts: bool
    line: str
    rows: list[Record] = field(default_factory=list)


@page("/failures")
def failures(visit: Visit) -> Shown:
    """Group the newest failed runs."""
    wanted = {"status": frozenset({"failed", "timed_out", "damaged"})}
    table = visit.source.runs(RunQuery(wanted=wanted, limit=_RUNS, search=visit.text("q")[:500]))
    groups = sorted(_grouped(visit.source, table.rows), key=lambda group: -len(group.rows))
    return Shown("failures.html.j2", {"groups": groups, "total": table.total, "most": _SHOWN, "read": len(table.rows)})


def _grouped(source: Source, rows: list[Record]) -> Iterator[Group]:
    groups: dict[tuple[str, str], Group] = {}
    for row in rows:
        cause = row["cause"] or row["status"]
        line = _line(source, row)
        key = (cause, _PARTICULARS.sub("…", line))
        if key not in groups:
            policy = CAUSES.get(Cause(cause)) if cause in set(Cause) else None
            meaning, counts = (policy.meaning, policy.counts) if policy else ("", False)
            groups[key] = Group(cause, meaning, counts, line)
        groups[key].rows.append(row)
    yield from groups.values()


def _line(source: Source, row: Record) -> str:
    """Return the last error in the agent's log, else why the run failed."""
    if row["cause"] in ("agent_crashed", "out_of_memory", None):
        try:
            run = source.run(row["id"])
            if found := last_error(run, str(row["updated_at"])):
                return found
        except MlereduxError:
            pass
    return (row["message"] or "")[:300]


def last_error(run: Run, changed: str) -> str:
    """Return the last line of the agent's log that names an error, or the empty text."""
    return _last_error(str(run.path), changed)


@lru_cache(maxsize=20_000)
def _last_error(path: str, _changed: str) -> str:
    from pathlib import Path

    log = excerpt(Path(path), b"logs/agent.log", head=0, tail=_LOG_BYTES)
    if log is None:
        return ""
    found = _ERROR.findall(terminal_text(log.head or log.tail))
    return found[-1].strip()[:300] if found else ""
