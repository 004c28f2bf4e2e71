"""`/v1/builds`: environments of agents, made ahead of their runs."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import select, tuple_

from mleredux_server.api.logs import LOG, After, log_answer
from mleredux_server.builds import answer_of, build_is_over, make_build, view_of
from mleredux_server.database.tables import BuildRow, User
from mleredux_server.idempotency import claim_of, look_first
from mleredux_server.problems import Problem, not_found
from mleredux_server.schemas.builds import BuildAsked, BuildView
from mleredux_server.schemas.pages import Page, Paging
from mleredux_server.security import Caller, needs
from mleredux_server.service import Service, service_of
from mleredux_server.work.build import LOG_FILE

router = APIRouter(prefix="/v1/builds", tags=["builds"])

Reader = Annotated[Caller, Depends(needs("read"))]
Runner = Annotated[Caller, Depends(needs("run"))]


@router.post("", status_code=202, response_model=BuildView)
def create_build(asked: BuildAsked, caller: Runner, request: Request) -> Response:
    """Build an agent's environment. A reference is fetched by the job; until then `agent` is what was asked for."""
    service = service_of(request)
    claim = claim_of(request, caller, asked)
    look_first(service.database, claim)
    return answer_of(make_build(service, caller, asked, claim)).response()


@router.get("")
def list_builds(caller: Reader, request: Request, paging: Annotated[Paging, Depends()]) -> Page[BuildView]:
    """Builds that the caller may see, newest first."""
    query = (
        select(BuildRow, User.name)
        .join(User, User.id == BuildRow.user_id)
        .order_by(BuildRow.created_at.desc(), BuildRow.id.desc())
        .limit(paging.limit + 1)
    )
    if not caller.all_projects:
        query = query.where(BuildRow.project_id.in_(caller.projects))
    if (place := paging.place(str)) is not None:
        at = select(BuildRow.created_at).where(BuildRow.id == place[0]).scalar_subquery()
        query = query.where(tuple_(BuildRow.created_at, BuildRow.id) < tuple_(at, place[0]))
    with service_of(request).database.reading() as session:
        rows = session.execute(query).all()
    shown, cursor = paging.cut(rows, lambda one: one[0].id)
    return Page[BuildView](items=[view_of(row, name) for row, name in shown], next=cursor)


@router.get("/{build_id}")
def get_build(build_id: str, caller: Reader, request: Request) -> BuildView:
    """One build."""
    return _seen(service_of(request), caller, build_id)


@router.get("/{build_id}/log", response_class=Response, responses=LOG)
async def get_build_log(build_id: str, caller: Reader, request: Request, after: After = None) -> Response:
    """The log of a build as it is, or live."""
    service = service_of(request)
    view = await run_in_threadpool(_seen, service, caller, build_id)
    over = partial(build_is_over, service, view.id)
    unfinished = view.status in ("queued", "building")
    missing = Problem(
        "not-yet" if unfinished else "not-found",
        f"Build {view.id} is {view.status} and has no log{' yet' if unfinished else ''}.",
        hint="Ask again, or follow it." if unfinished else "Nothing had to be built, or its message says why not.",
    )
    folder = service.job_dir("build", view.id)
    return await log_answer(request, caller, folder, LOG_FILE.encode(), over, view.project, after, missing)


def _seen(service: Service, caller: Caller, found: str) -> BuildView:
    with service.database.reading() as session:
        row = session.get(BuildRow, found)
        user = session.get(User, row.user_id) if row is not None else None
    if row is None or user is None or not caller.sees(row.project_id):
        raise not_found("build", found)
    return view_of(row, user.name)
