"""`/v1/experiments`: matrices of runs, made whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from sqlalchemy import func, select, tuple_
from sqlalchemy.orm import Session

from mleredux_server.accounts import visible_project
from mleredux_server.database.tables import Experiment, RunRow, User, now
from mleredux_server.idempotency import Answer, claim_of, look_first
from mleredux_server.identity import new_id
from mleredux_server.problems import not_found
from mleredux_server.references import pin_agent
from mleredux_server.run_lists import cursor_time, shown_runs
from mleredux_server.runs import make_runs, plan_matrix
from mleredux_server.schemas.pages import Page, Paging
from mleredux_server.schemas.runs import ExperimentDetail, ExperimentRequest, ExperimentView
from mleredux_server.security import Caller, needs
from mleredux_server.service import service_of
from mleredux_server.views import experiment_detail, experiment_view, run_view

router = APIRouter(prefix="/v1/experiments", tags=["experiments"])

Reader = Annotated[Caller, Depends(needs("read"))]
Runner = Annotated[Caller, Depends(needs("run"))]


@router.post("", status_code=201, response_model=ExperimentDetail)
def create_experiment(asked: ExperimentRequest, caller: Runner, request: Request) -> Response:
    """Make a run of each task with each agent and each seed: all of them, or none."""
    service = service_of(request)
    claim = claim_of(request, caller, asked)
    look_first(service.database, claim)
    agents = dict.fromkeys(pin_agent(service, caller, agent, asked.options) for agent in dict.fromkeys(asked.agents))
    asked = asked.model_copy(update={"agents": list(agents)})
    planned = plan_matrix(service, asked)
    experiment = Experiment(
        id=new_id("exp"),
        name=asked.name or f"{len(planned)} runs",
        user_id=caller.user_id,
        request=asked.model_dump(mode="json", exclude={"context"}),
        created_at=now(),
    )

    def answer(rows: list[RunRow]) -> Answer:
        views = [run_view(row, caller.user_name, None) for row in rows]
        detail = experiment_detail(experiment, caller.user_name, views)
        return Answer(201, {"Location": f"/v1/experiments/{experiment.id}"}, detail.model_dump_json())

    rows = make_runs(service, caller, planned, asked, experiment=experiment, claim=claim, answer=answer)
    return answer(rows).response()


@router.get("")
def list_experiments(
    caller: Reader,
    request: Request,
    paging: Annotated[Paging, Depends()],
    project: Annotated[str | None, Query(max_length=512, description="Id or name.")] = None,
) -> Page[ExperimentView]:
    """Experiments that the caller may see, newest first, without their runs."""
    with service_of(request).database.reading() as session:
        query = select(Experiment, User.name).outerjoin(User, User.id == Experiment.user_id)
        if project is not None:
            query = query.where(Experiment.project_id == visible_project(session, caller, project).id)
        elif not caller.all_projects:
            query = query.where(Experiment.project_id.in_(caller.projects))
        if place := paging.place(str, str):
            query = query.where(tuple_(Experiment.created_at, Experiment.id) < (cursor_time(place[0]), place[1]))
        query = query.order_by(Experiment.created_at.desc(), Experiment.id.desc()).limit(paging.limit + 1)
        rows, cursor = paging.cut(session.execute(query).all(), lambda row: (row[0].created_at.isoformat(), row[0].id))
        counts = _counts(session, [row.id for row, _ in rows])
    return Page[ExperimentView](
        items=[experiment_view(row, name or "", counts.get(row.id, {})) for row, name in rows], next=cursor
    )


@router.get("/{experiment_id}")
def get_experiment(experiment_id: str, caller: Reader, request: Request) -> ExperimentDetail:
    """An experiment with all its runs, in the order they were asked for."""
    with service_of(request).database.reading() as session:
        experiment = session.get(Experiment, experiment_id)
        if experiment is None or not caller.sees(experiment.project_id):
            raise not_found("experiment", experiment_id)
        user = session.get_one(User, experiment.user_id).name
        query = shown_runs().where(RunRow.experiment_id == experiment_id).order_by(RunRow.created_at, RunRow.id)
        rows = session.execute(query).all()
    return experiment_detail(experiment, user, [run_view(row, name or "", job) for row, name, job in rows])


def _counts(session: Session, ids: Sequence[str]) -> dict[str, dict[str, int]]:
    """Runs of each experiment in each status."""
    query = (
        select(RunRow.experiment_id, RunRow.status, func.count())
        .where(RunRow.experiment_id.in_(ids))
        .group_by(RunRow.experiment_id, RunRow.status)
    )
    found: dict[str, dict[str, int]] = {}
    for experiment, status, number in session.execute(query):
        found.setdefault(str(experiment), {})[status] = number
    return found
