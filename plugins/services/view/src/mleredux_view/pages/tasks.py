"""The tasks, and one of them: its description, files, leaderboard, known leaks, and panels of plugins."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from mleredux.errors import MlereduxError, NotFound
from mleredux.models.formats import number, size
from mleredux.plugin.command import DataStore, current
from mleredux.plugin.files import readable_path
from mleredux.plugin.task import Task, read_leaderboard
from mleredux_artifact_reports.shared import markdown
from starlette.responses import Response

from mleredux_view.charts import Series, chart
from mleredux_view.downloads import sent
from mleredux_view.plugins import panels_of
from mleredux_view.source import RunQuery
from mleredux_view.visit import Shown, Visit, page

_FILES = 200
_POINTS = 400
_ZIP_BYTES = 2 << 30
_NAMED = ("gold", "silver", "bronze", "median")


class Level(NamedTuple):
    """A threshold of the leaderboard: its score, and the number of entries at or beyond it."""

    name: str
    score: str
    entries: int


@page("/tasks")
def tasks(visit: Visit) -> Shown:
    """Show all installed tasks and those with runs; an export contains only the latter."""
    counts = Counter(dict(visit.source.runs(RunQuery(limit=1, facets=("task",))).facets["task"]))
    known = {name: entry.ref.summary for name, entry in current().entries("tasks").items()}
    words = visit.text("q").lower()[:200].split()
    named = dict.fromkeys([*sorted(filter(None, counts), key=lambda name: -counts[name]), *known])
    rows = [
        {
            "id": name,
            "runs": counts[name],
            **{key: known.get(name, {}).get(key) for key in ("title", "category", "metric")},
        }
        for name in named
        if (counts[name] or not visit.static) and all(word in f"{name} {known.get(name)}".lower() for word in words)
    ]
    return Shown("tasks.html.j2", {"rows": rows, "words": visit.text("q")[:200]})


@page("/tasks/{task}")
def task(visit: Visit) -> Shown:
    """Show one task."""
    name = visit.parts["task"]
    try:
        declared = current().task(name)
    except MlereduxError as error:
        if not visit.rows(1, task=[name]):
            raise
        return Shown("task.html.j2", {"name": name, "task": None, "why": error.message, "panels": []})
    entries, about = _leaderboard(visit, declared)
    values = {
        "levels": list(_levels(declared, entries)),
        "entries": len(entries),
        "chart": _curve(declared, entries),
        "about": about,
        "description": markdown(declared.describe()),
        **_files(visit, declared),
    }
    return Shown("task.html.j2", {"name": name, "task": declared, "panels": panels_of(visit, declared), **values})


@page("/tasks/{task}/files.zip")
def download(visit: Visit) -> Response:
    """Send the files that agents receive for the task, and its description."""
    chosen = current().task(visit.parts["task"])
    if visit.static or (public := _public(visit, chosen)) is None:
        raise NotFound(f"The files of {chosen.id} are missing.", hint=f"`mleredux prepare {chosen.id}` creates them.")
    paths = [path for path in sorted(public.rglob("*")) if path.is_file() and not path.is_symlink()]
    if sum(path.stat().st_size for path in paths) > _ZIP_BYTES:
        where = f"They are in {public}." if visit.folder else "Ask the server's administrator for them."
        raise MlereduxError(f"The files of {chosen.id} are too large to download.", hint=where)
    packed = tempfile.TemporaryFile()  # noqa: SIM115 (closed when it was sent)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in paths:
            archive.write(path, path.relative_to(public))
        archive.writestr("description.md", chosen.describe())
    return sent(packed, f"{chosen.id}.zip")


def _public(visit: Visit, task: Task) -> Path | None:
    prepared = DataStore(visit.data_dir).find(task)
    return prepared.public if prepared else None


def _files(visit: Visit, task: Task) -> dict[str, Any]:
    """Return the public files with their sizes, or why they are not available."""
    why = f"The data is not prepared on this machine; `mleredux prepare {task.id}` prepares it."
    try:
        public = _public(visit, task)
    except MlereduxError as error:
        public, why = None, error.message
    if public is None:
        return {"files": [], "more": 0, "unprepared": why, "can_download": False}
    paths = [path for path in sorted(public.rglob("*")) if path.is_file()]
    names = [readable_path(os.fsencode(path.relative_to(public))) for path in paths[:_FILES]]
    files = [(name, size(path.stat().st_size)) for name, path in zip(names, paths, strict=False)]
    return {"files": files, "more": len(paths) - len(files), "unprepared": "", "can_download": not visit.static}


def _leaderboard(visit: Visit, task: Task) -> tuple[list[float], str]:
    """Return the scores of people, the best first, and their source."""
    downloaded = DataStore(visit.data_dir).leaderboard(task)
    path = downloaded if downloaded.is_file() else task.leaderboard
    if path is None:
        return [], "This task has no leaderboard."
    try:
        return read_leaderboard(path), ""
    except MlereduxError as error:
        return [], error.message


def _levels(task: Task, entries: list[float]) -> Any:
    thresholds = task.thresholds
    if thresholds is None:
        return
    sign = 1 if task.direction == "maximize" else -1
    for name in _NAMED:
        level = getattr(thresholds, name)
        yield Level(name, number(level), sum(sign * entry >= sign * level for entry in entries))


def _curve(task: Task, entries: list[float]) -> dict[str, Any] | None:
    """Return a chart of scores by rank, at evenly spaced ranks if the list is long; the worst third is omitted, because
    it would flatten the rest."""
    if len(entries) < 3:
        return None
    kept = max(3, round(len(entries) / 1.5))
    every = max(1, kept // _POINTS)
    points = [(float(rank + 1), entries[rank]) for rank in range(0, kept, every)]
    levels = [(name, getattr(task.thresholds, name)) for name in _NAMED] if task.thresholds else []
    return chart([Series(task.metric.id, points, points_shown=False)], "rank", levels)
