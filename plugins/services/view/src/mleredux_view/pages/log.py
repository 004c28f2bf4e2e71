"""A run's log by line: its end, any line, the first error, a search; it is updated while the run is active."""

from __future__ import annotations

import os
from typing import NamedTuple

from mleredux.models.formats import size
from mleredux.plugin.artifact import Run
from mleredux.plugin.files import IntakeLimits, path_of_readable, readable_path
from mleredux_artifact_reports.shared import files_below, terminal_text

from mleredux_view.logfile import TRACEBACK, Line, LogFile, log_of
from mleredux_view.pages.run import about
from mleredux_view.visit import Shown, Visit, page

_LINES = 400
_BEFORE = 40
_LOGS = 200
_MAIN = "logs/agent.log"


class Row(NamedTuple):
    """A displayed line; `kind` is a CSS class."""

    number: int
    text: str
    kind: str


@page("/runs/{run_id}/log")
def log(visit: Visit) -> Shown:
    """Show lines of one of the run's logs."""
    run = visit.run
    names = _names(run)
    name = visit.text("name") if visit.text("name") in names else _MAIN if _MAIN in names else next(iter(names), None)
    values = {**about(run, "log"), "names": names, "name": name, "log": None, "main": _MAIN}
    if name is None:
        return Shown("log.html.j2", values)
    try:
        file = log_of(run.path, os.fsdecode(path_of_readable(name) or b""))
    except OSError:
        return Shown("log.html.j2", values)
    query, line = visit.text("q")[:200], visit.count("line", 0)
    match = file.search(query.encode(), line or 1) if query else None
    place = match or (file.error if visit.text("at") == "error" and not line else line)
    first = max(1, place - _BEFORE if place else file.lines - _LINES + 1)
    rows = [_row(entry, place, query) for entry in file.read(first, _LINES)]
    end = first + _LINES > file.lines
    following = end and not place and not run.state.final and not visit.static
    return Shown(
        "log.html.j2",
        {**values, **_links(visit, file, name, first), "log": file, "rows": rows, "query": query, "found": match,
         "place": place, "first": first, "size": size(file.size), "following": following},
    )  # fmt: skip


def _links(visit: Visit, file: LogFile, name: str, first: int) -> dict[str, str | None]:
    """Return URLs of other lines; a linked line is shown with some preceding lines.

    An export contains the whole log as a text file instead, so that it is hardly larger than the runs.
    """

    def to(line: int) -> str:
        other = {} if name == _MAIN else {"name": name}
        return visit.link("runs", visit.parts["run_id"], "log", **other, line=max(1, line) + _BEFORE)

    after = first + _LINES
    if visit.static:
        whole = visit.link("runs", visit.parts["run_id"], "raw", path=name) if file.lines > _LINES else None
        return {"earlier": None, "later": None, "start": None, "whole": whole}
    return {
        "whole": None,
        "earlier": to(first - _LINES) if first > 1 else None,
        "later": to(after) if after <= file.lines else None,
        "start": to(1) if first > 1 else None,
    }


def _row(line: Line, place: int | None, query: str) -> Row:
    text = terminal_text(line.data)
    if line.left_out:
        text += f" [… {line.left_out:,} bytes omitted]"
    if line.number == place:
        kind = "at"
    elif query and query.lower() in text.lower():
        kind = "found"
    else:
        kind = "trace" if TRACEBACK in line.data else ""
    return Row(line.number, text, kind)


def _names(run: Run) -> dict[str, str]:
    """Return the paths of logs in the run, and their sizes."""
    sizes = {}
    for folder in ("logs", "output/logs"):
        for file in files_below(run.path, folder, IntakeLimits(files=_LOGS, depth=3)):
            if file.reason is None and file.size:
                sizes[f"{folder}/{readable_path(file.path)}"] = size(file.size)
    return dict(sorted(sizes.items(), key=lambda item: item[0] != _MAIN))
