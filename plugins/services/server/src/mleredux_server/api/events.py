"""`/v1/runs/{id}/events`: the events of a run, live or in pages."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from mleredux.plugin.artifact import Event

from mleredux_server.accounts.security import Reader
from mleredux_server.operations.places import hide_folders
from mleredux_server.protocol.problems import Problem
from mleredux_server.runs.lookup import SeenRun, run_is_over, run_of
from mleredux_server.schemas.pages import Page, Pages, Paging
from mleredux_server.service import Current
from mleredux_server.streams.frames import DamagedLog, EventLines
from mleredux_server.streams.hub import hub_of
from mleredux_server.streams.pages import events_after
from mleredux_server.streams.parameters import resumed_at, wants_stream
from mleredux_server.streams.tail import Followed

router = APIRouter(prefix="/v1/runs/{run_id}", tags=["events"])

STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A page; with `Accept: text/event-stream` a live stream that ends with `event: end`.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.get("/events", response_model=Page[Event], responses=STREAM)
async def get_events(
    run_id: str,
    caller: Reader,
    request: Request,
    service: Current,
    paging: Pages,
    after: Annotated[int | None, Query(ge=-1, le=2**63 - 1, description="Only events with higher numbers.")] = None,
) -> Any:
    """List a run's events, in order: sequence numbers have no gaps and no duplicates."""
    run = await run_in_threadpool(run_of, service, caller, run_id)
    shown = hide_folders(service.settings.runs_dir, service.data.path)
    if wants_stream(request):
        over = partial(run_is_over, service, run.id)
        followed = Followed(run.path, b"events.jsonl", EventLines(shown), over, run.project)
        begin = resumed_at(request, after)
        return hub_of(request).answer(request, caller, followed, after=-1 if begin is None else begin)
    place = paging.place(int)
    last = place[0] if place else -1 if after is None else after
    return await run_in_threadpool(_page, run, last, paging, shown)


def _page(run: SeenRun, after: int, paging: Paging, hide: Callable[[str], str]) -> Page[Event]:
    try:
        events = events_after(run.path, after, paging.limit + 1, hide)
    except (OSError, DamagedLog) as error:
        hint = "Contact the server administrator."
        raise Problem("conflict", f"The event log of run {run.id} can't be read.", hint=hint) from error
    return paging.page(events, lambda event: event.seq, lambda event: event)
