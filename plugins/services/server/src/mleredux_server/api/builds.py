"""`/v1/builds`: environments of agents, built ahead of their runs."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from mleredux_http_api import BuildView

from mleredux_server.accounts.security import Reader, Runner
from mleredux_server.api.logs import LOG, After, log_answer
from mleredux_server.database.tables import BuildRow
from mleredux_server.protocol.idempotency import claim_of
from mleredux_server.protocol.problems import Problem
from mleredux_server.runs.builds import build_is_over, make_build
from mleredux_server.runs.lookup import find, newest
from mleredux_server.runs.views import as_view
from mleredux_server.schemas.builds import BuildAsked
from mleredux_server.schemas.pages import Page, Pages
from mleredux_server.service import Current
from mleredux_server.streams.frames import LogText
from mleredux_server.streams.tail import Followed
from mleredux_server.work.build import LOG_FILE

router = APIRouter(prefix="/v1/builds", tags=["builds"])


@router.post("", status_code=202, response_model=BuildView)
def create_build(body: BuildAsked, caller: Runner, request: Request, service: Current) -> Response:
    """Build an agent's environment. The job resolves the reference; until then, `agent` is the reference as
    requested."""
    claim = claim_of(request, caller, body, first=service.database)
    return make_build(service, caller, body, claim).response()


@router.get("")
def list_builds(caller: Reader, service: Current, paging: Pages) -> Page[BuildView]:
    """List builds visible to the caller, newest first."""
    with service.database.reading() as session:
        rows, cursor = newest(session, caller, BuildRow, paging)
    return Page[BuildView](items=[as_view(BuildView, row, user=name) for row, name in rows], next=cursor)


@router.get("/{build_id}")
def get_build(build_id: str, caller: Reader, service: Current) -> BuildView:
    """Get a build."""
    row, user = find(service, caller, BuildRow, build_id)
    return as_view(BuildView, row, user=user)


@router.get("/{build_id}/log", response_class=Response, responses=LOG)
async def get_build_log(
    build_id: str, caller: Reader, request: Request, service: Current, after: After = None
) -> Response:
    """Get the current log of a build, or follow it live."""
    row, _ = await run_in_threadpool(find, service, caller, BuildRow, build_id)
    over = partial(build_is_over, service, row.id)
    unfinished = row.status in ("queued", "building")
    missing = Problem(
        "not-yet" if unfinished else "not-found",
        f"Build {row.id} is {row.status} and has no log{' yet' if unfinished else ''}.",
        hint="Retry later, or follow it." if unfinished else "Nothing was built; its message may have the reason.",
    )
    followed = Followed(service.job_dir("build", row.id), LOG_FILE.encode(), LogText(), over, row.project_id)
    return await log_answer(request, caller, followed, after, missing)
