"""`/v1/runs/{id}/logs`: the output of agents and sandboxes, live or as text."""

from __future__ import annotations

import os
import stat
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from mleredux.plugin.files import path_of_readable, readable_path
from mleredux_http_api import LogView

from mleredux_server.accounts.security import Caller, Reader
from mleredux_server.files.access import open_inside
from mleredux_server.files.masks import masks_of
from mleredux_server.files.responses import send_file
from mleredux_server.protocol.problems import Problem
from mleredux_server.runs.lookup import SeenRun, run_is_over, run_of
from mleredux_server.schemas.pages import Page, Pages
from mleredux_server.service import Current
from mleredux_server.streams.frames import LogText
from mleredux_server.streams.hub import hub_of
from mleredux_server.streams.parameters import resumed_at, wants_stream
from mleredux_server.streams.tail import Followed

router = APIRouter(prefix="/v1/runs/{run_id}", tags=["logs"])

After = Annotated[int | None, Query(ge=0, le=2**63 - 1, description="Streams only: start after this byte.")]
LOG: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The text; with `Accept: text/event-stream` a live stream that ends with `event: end`.",
        "content": {
            "text/plain": {"schema": {"type": "string"}},
            "text/event-stream": {"schema": {"type": "string"}},
        },
    },
    206: {"description": "The part requested by `Range`."},
    304: {"description": "The client's copy is current (`If-None-Match`)."},
    416: {"description": "The range starts after the end of the log."},
}
_MOST_LOGS = 10_000


@router.get("/logs")
def list_logs(run_id: str, caller: Reader, service: Current, paging: Pages) -> Page[LogView]:
    """List the logs of a run."""
    run = run_of(service, caller, run_id)
    return paging.page_of_all(_logs(run), lambda log: log.name, lambda log: log)


@router.get("/logs/{name}", response_class=Response, responses=LOG)
async def get_log(
    run_id: str, name: str, caller: Reader, request: Request, service: Current, after: After = None
) -> Response:
    """Get the current log, or follow it live. Bytes that are not UTF-8 are replaced in a stream, but not in the text.

    The agent's secrets are masked even while it runs: text that may be the beginning of a secret is held back until
    more arrives.
    """
    run = await run_in_threadpool(run_of, service, caller, run_id)
    path = path_of_readable(name)
    if path is None or b"/" in path or path.startswith(b"."):
        raise _no_log(run, name)
    exists = await run_in_threadpool(_is_file, run.path / "logs", path)
    if not exists and (run.ended or exists is False):
        raise _no_log(run, name)
    over = partial(run_is_over, service, run.id)
    cover = await run_in_threadpool(masks_of(request).cover, run)
    followed = Followed(run.path / "logs", path, LogText(), over, run.project, cover)
    return await log_answer(request, caller, followed, after, _no_log(run, name))


async def log_answer(
    request: Request, caller: Caller, followed: Followed, after: int | None, missing: Problem
) -> Response:
    """Return a log as a stream or as text, as requested.

    Raises:
        Problem: The log does not exist and will not appear.
    """
    if wants_stream(request):
        return hub_of(request).answer(request, caller, followed, offset=resumed_at(request, after) or 0)
    try:
        file = await run_in_threadpool(open_inside, followed.root, followed.name, followed.cover)
    except OSError:
        raise missing from None
    return send_file(request, file, path=readable_path(followed.name), media_type="text/plain")


def _logs(run: SeenRun) -> list[LogView]:
    """List regular files of the folder; links and special files are not logs."""
    logs: list[LogView] = []
    try:
        with os.scandir(os.fsencode(run.path / "logs")) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode) and not entry.name.startswith(b".") and len(logs) < _MOST_LOGS:
                    logs.append(LogView(name=readable_path(entry.name), size=status.st_size))
    except OSError:
        return logs
    return sorted(logs, key=lambda log: log.name)


def _is_file(folder: Path, name: bytes) -> bool | None:
    """Return whether it is a regular file; None if it does not exist (yet)."""
    try:
        return stat.S_ISREG((folder / os.fsdecode(name)).lstat().st_mode)
    except OSError:
        return None


def _no_log(run: SeenRun, name: str) -> Problem:
    if not run.ended:
        return Problem("not-yet", f"Run {run.id} has no log {name[:200]!r} yet.", hint="Try again later, or follow it.")
    return Problem("not-found", f"Run {run.id} has no log {name[:200]!r}.", hint="See the list of its logs.")
