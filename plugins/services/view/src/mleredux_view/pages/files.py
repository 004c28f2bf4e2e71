"""Files of a run with previews. Files written by agents are never served as pages, only as text, images or
downloads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from mleredux.models.formats import size
from mleredux.plugin.artifact import Run
from mleredux.plugin.files import IntakeLimits, open_below, path_of_readable, readable_path
from mleredux_artifact_reports.shared import excerpt, files_below
from starlette.responses import Response

from mleredux_view.downloads import sent
from mleredux_view.pages.run import about
from mleredux_view.previews import IMAGES, READ_BYTES, preview_of
from mleredux_view.visit import Shown, Visit, missing, page

_FOLDERS = ("output", "submissions", "logs", "llm")
_FILES = 2_000


class Listed(NamedTuple):
    """A file of the run."""

    path: str
    size: str
    why: str


@page("/runs/{run_id}/files")
def files(visit: Visit) -> Shown:
    """List the run's files, or show one of them."""
    run, path = visit.run, visit.text("path")
    if not path:
        listed = list(_listed(run))
        values = {"groups": _grouped(listed), "more": len(listed) >= _FILES}
        return Shown("files.html.j2", {**about(run, "files"), **values})
    name = _own_name(path)
    read = excerpt(run.path, name, head=READ_BYTES) if name else None
    if read is None:
        raise missing(f"file {path[:200]!r} in run {run.id}")
    preview = preview_of(path, read)
    return Shown("file.html.j2", {**about(run, "files"), "path": path, "size": size(read.size), "preview": preview})


@page("/runs/{run_id}/raw")
def raw(visit: Visit) -> Response:
    """Send a file: inline if it is an image on a page, otherwise as a download, in a sandbox without any
    permissions."""
    run, path = visit.run, visit.text("path")
    name = _own_name(path)
    with suppress(OSError):
        if name:
            file = open_below(run.path, os.fsdecode(name))
            return sent(file, path.rpartition("/")[2], IMAGES.get(path[path.rfind(".") :].lower()))
    raise missing(f"file {path[:200]!r} in run {run.id}")


def _own_name(path: str) -> bytes | None:
    """Return the path of a file that may be shown, from its form in lists; hidden ones, such as a lock, belong to the
    store."""
    return None if path.startswith(".") else path_of_readable(path)


def _listed(run: Run) -> Iterator[Listed]:
    """Yield the files of mleredux and of plugins, then those of the agent, then those that exist only in the object
    store."""
    here = set()
    for file in _listed_here(run):
        here.add(file.path)
        yield file
    for kept in run.manifest.artifacts if run.manifest is not None else ():
        if kept.path.startswith(("output/", "submissions/")) and kept.path not in here and len(here) < _FILES:
            why = f"not on this disk; get it with `mleredux artifacts {run.id} --output FOLDER`"
            yield Listed(kept.path, size(kept.size), why)


def _listed_here(run: Run) -> Iterator[Listed]:
    own = sorted(entry.name for entry in run.path.iterdir() if entry.is_file() and not entry.is_symlink())
    for name in own:
        if not name.startswith("."):
            yield Listed(name, size((run.path / name).stat().st_size), "")
    remaining = _FILES
    for folder in _FOLDERS:
        for file in files_below(run.path, folder, IntakeLimits(files=remaining, depth=20)):
            if remaining <= 0:
                return
            remaining -= 1
            yield Listed(
                f"{folder}/{readable_path(file.path)}",
                size(file.size),
                f"skipped: {file.reason}" if file.reason else "",
            )


def _grouped(listed: list[Listed]) -> dict[str, list[Listed]]:
    groups: dict[str, list[Listed]] = {}
    for file in listed:
        groups.setdefault(file.path.rpartition("/")[0], []).append(file)
    return groups
