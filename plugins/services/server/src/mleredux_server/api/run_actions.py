"""`/v1/runs/{id}`: cancel, retry, delete; `/v1/experiments/{id}/cancel`."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy import select

from mleredux_server.database.tables import Experiment, Job, RunRow, User
from mleredux_server.idempotency import claim_of, look_first
from mleredux_server.problems import not_found
from mleredux_server.queueing.actions import cancel_runs, delete_run, retry_run
from mleredux_server.schemas.runs import ExperimentDetail, RunView
from mleredux_server.security import Caller, needs
from mleredux_server.service import Service, service_of
from mleredux_server.views import run_view

router = APIRouter(prefix="/v1", tags=["runs"])

Runner = Annotated[Caller, Depends(needs("run"))]
_ENDED: dict[int | str, dict[str, Any]] = {200: {"model": ExperimentDetail}}


@router.post("/runs/{run_id}/cancel", status_code=202, responses={200: {"model": RunView}})
def cancel_run(run_id: str, caller: Runner, request: Request, response: Response) -> RunView:
    """Stop a run; what there is of it is kept. 200 where it has ended already."""
    service = service_of(request)
    seen = _view(service, caller, run_id)
    if not cancel_runs(service, caller, [seen.id], seen.id):
        response.status_code = 200
    return _view(service, caller, run_id)


@router.post("/runs/{run_id}/retry", status_code=202, response_model=RunView, responses={201: {"model": RunView}})
def retry(run_id: str, caller: Runner, request: Request) -> Response:
    """Let a run go on that failed by no fault of its agent (202), or make a new one of the same request (201)."""
    service = service_of(request)
    seen = _view(service, caller, run_id)
    claim = claim_of(request, caller)
    look_first(service.database, claim)
    return retry_run(service, caller, seen.id, claim).response()


@router.delete("/runs/{run_id}", status_code=204)
def delete(run_id: str, caller: Runner, request: Request) -> None:
    """Remove a run and all it left; 409 while it is not at its end."""
    service = service_of(request)
    delete_run(service, caller, _view(service, caller, run_id).id)


@router.post("/experiments/{experiment_id}/cancel", status_code=202, tags=["experiments"], responses=_ENDED)
def cancel_experiment(experiment_id: str, caller: Runner, request: Request, response: Response) -> ExperimentDetail:
    """Stop all runs of a matrix. 200 where all have ended already."""
    service = service_of(request)
    with service.database.reading() as session:
        experiment = session.get(Experiment, experiment_id)
        if experiment is None or not caller.sees(experiment.project_id):
            raise not_found("experiment", experiment_id)
        user = session.get_one(User, experiment.user_id).name
        ids = session.scalars(select(RunRow.id).where(RunRow.experiment_id == experiment_id)).all()
    if not cancel_runs(service, caller, ids, experiment_id):
        response.status_code = 200
    with service.database.reading() as session:
        query = select(RunRow, User.name, Job).join(User, User.id == RunRow.user_id).join(Job, Job.id == RunRow.id)
        rows = session.execute(query.where(RunRow.experiment_id == experiment_id).order_by(RunRow.id)).all()
    views = [run_view(row, name, job) for row, name, job in rows]
    counts: dict[str, int] = {}
    for view in views:
        counts[view.status] = counts.get(view.status, 0) + 1
    return ExperimentDetail(
        id=experiment.id,
        name=experiment.name,
        project=experiment.project_id,
        user=user,
        created_at=experiment.created_at,
        counts=counts,
        runs=views,
    )


def _view(service: Service, caller: Caller, run_id: str) -> RunView:
    """A run as it is shown.

    Raises:
        Problem: There is none that the caller may see.
    """
    with service.database.reading() as session:
        query = select(RunRow, User.name, Job).join(User, User.id == RunRow.user_id).join(Job, Job.id == RunRow.id)
        found = session.execute(query.where(RunRow.id == run_id)).one_or_none()
    if found is None or not caller.sees(found[0].project_id):
        raise not_found("run", run_id)
    return run_view(*found)
