"""`/v1/runs`: make, list, get."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from mleredux.errors import MlereduxError
from sqlalchemy import select, tuple_

from mleredux_server.database.tables import Job, RunRow, User
from mleredux_server.problems import Problem, not_found
from mleredux_server.runs import make_runs, plan_run
from mleredux_server.schemas.pages import Page, make_cursor, read_cursor
from mleredux_server.schemas.runs import RunDetail, RunRequest, RunView
from mleredux_server.security import Caller, needs
from mleredux_server.service import service_of
from mleredux_server.views import run_view

router = APIRouter(prefix="/v1/runs", tags=["runs"])

Reader = Annotated[Caller, Depends(needs("read"))]
Runner = Annotated[Caller, Depends(needs("run"))]


@router.post("", status_code=201)
def create_run(asked: RunRequest, caller: Runner, request: Request, response: Response) -> RunView:
    """Make a run; it waits until there is room for it."""
    service = service_of(request)
    planned = plan_run(service, asked)
    [row] = make_runs(service, caller, [planned], asked)
    response.headers["Location"] = f"/v1/runs/{row.id}"
    return run_view(row, caller.user_name, None)


@router.get("")
def list_runs(
    caller: Reader,
    request: Request,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    cursor: str | None = None,
) -> Page[RunView]:
    """Runs that the caller may see, newest first."""
    query = (
        select(RunRow, User.name, Job)
        .join(User, User.id == RunRow.user_id)
        .join(Job, Job.id == RunRow.id)
        .order_by(RunRow.created_at.desc(), RunRow.id.desc())
        .limit(limit + 1)
    )
    if not caller.all_projects:
        query = query.where(RunRow.project_id.in_(caller.projects))
    if cursor is not None:
        [last] = read_cursor(cursor, 1)
        place = select(RunRow.created_at, RunRow.id).where(RunRow.id == str(last)).subquery()
        query = query.where(
            tuple_(RunRow.created_at, RunRow.id) < tuple_(select(place.c.created_at).scalar_subquery(), str(last))
        )
    with service_of(request).database.reading() as session:
        rows = session.execute(query).tuples().all()
    views = [run_view(row, name, job) for row, name, job in rows[:limit]]
    return Page[RunView](items=views, next=make_cursor(views[-1].id) if len(rows) > limit else None)


@router.get("/{run_id}")
def get_run(run_id: str, caller: Reader, request: Request) -> RunDetail:
    """One run, with its report once there is one."""
    service = service_of(request)
    with service.database.reading() as session:
        query = select(RunRow, User.name, Job).join(User, User.id == RunRow.user_id).join(Job, Job.id == RunRow.id)
        found = session.execute(query.where(RunRow.id == run_id)).tuples().one_or_none()
    if found is None or not caller.sees(found[0].project_id):
        raise not_found("run", run_id)
    try:
        report = service.store.get(found[0].id).report
    except MlereduxError as error:
        raise Problem("conflict", error.message, hint=error.hint) from error
    return RunDetail(**run_view(*found).model_dump(), report=report)
