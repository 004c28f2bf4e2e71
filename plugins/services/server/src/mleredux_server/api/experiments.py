"""`/v1/experiments`: matrices of runs, created atomically and cancelled together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from mleredux.models.formats import counted
from mleredux.plugin.experiment import Plan, resolved
from mleredux_http_api import ExperimentView
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from mleredux_server.accounts.identity import new_id
from mleredux_server.accounts.secrets import providing
from mleredux_server.accounts.security import Caller, Reader, Runner
from mleredux_server.database.tables import Experiment, RunRow, now
from mleredux_server.protocol.idempotency import Answer, Claim, claim_of
from mleredux_server.protocol.problems import Problem, require_statistics
from mleredux_server.runs.extension import Outdated, extend, retry_broken
from mleredux_server.runs.lists import shown_runs
from mleredux_server.runs.lookup import find, newest, past_runs
from mleredux_server.runs.references import check_agent, pin_agent
from mleredux_server.runs.requests import make_runs, plan_experiment, request_of
from mleredux_server.runs.views import as_view, experiment_detail, run_view
from mleredux_server.scheduler.actions import cancel_runs
from mleredux_server.schemas.pages import Page, Pages
from mleredux_server.schemas.runs import ExperimentDetail, ExperimentRequest, ExtensionRequest
from mleredux_server.service import Current, Service

router = APIRouter(prefix="/v1/experiments", tags=["experiments"])

_MOST_AGENTS = 100
_ATTEMPTS = 10
"""Maximum number of attempts to extend an experiment that other requests change at the same time."""
_TEXTS: Any = {"context": True, "plan": {"arms": {"__all__": {"contexts"}}}}
"""Fields that are not stored with an experiment, since each run stores its own copy."""
_NOTHING = ExtensionRequest()


@router.post("", status_code=201, response_model=ExperimentDetail)
def create_experiment(body: ExperimentRequest, caller: Runner, request: Request, service: Current) -> Response:
    """Create a run for each task, agent and seed: all of them, or none."""
    claim = claim_of(request, caller, body, first=service.database)
    with providing(service, caller, body.secrets, body.project):
        planned = plan_experiment(service, body, _pinned(service, caller, body))
    experiment = Experiment(
        id=new_id("exp"),
        name=body.name or (body.plan.experiment.name if body.plan else counted(len(planned), "run")),
        user_id=caller.user_id,
        request=body.model_dump(mode="json", exclude=_TEXTS),
        created_at=now(),
    )

    def answer(rows: list[RunRow]) -> Answer:
        views = [run_view(row, caller.user_name, None) for row in rows]
        detail = experiment_detail(experiment, caller.user_name, views)
        return Answer(201, {"Location": f"/v1/experiments/{experiment.id}"}, detail.model_dump_json())

    rows = make_runs(service, caller, planned, body, experiment=experiment, claim=claim, answer=answer)
    return answer(rows).response()


@router.post("/check")
def check_experiment(body: ExperimentRequest, caller: Runner, request: Request, service: Current) -> dict[str, Any]:
    """Check a planned experiment without creating it: return its runs, its time and cost estimated from past runs that
    the caller may see, and the smallest difference that it detects."""
    with providing(service, caller, body.secrets, body.project):
        planned = plan_experiment(service, body, _pinned(service, caller, body))
    if body.plan is None:
        raise Problem("invalid", "Only plans can be checked.", hint="Set `plan`.")
    names = resolved(body.plan.request, service.catalogue).cells()
    cells = [(cell, run.plan) for cell, run in zip(names, planned, strict=True)]
    past = past_runs(service, caller, {run.plan.agent for run in planned})
    require_statistics()
    from mleredux_experiments.shared import check_matrix

    return check_matrix(body.plan, cells, past).document()


@router.get("")
def list_experiments(
    caller: Reader,
    service: Current,
    paging: Pages,
    project: Annotated[str | None, Query(max_length=512, description="Id or name.")] = None,
    name: Annotated[str | None, Query(max_length=200, description="Only experiments with this name.")] = None,
) -> Page[ExperimentView]:
    """List experiments visible to the caller, newest first, without their runs."""
    where = [] if name is None else [Experiment.name == name]
    with service.database.reading() as session:
        rows, cursor = newest(session, caller, Experiment, paging, *where, project=project)
        counts = _counts(session, [row.id for row, _ in rows])
    return Page[ExperimentView](
        items=[as_view(ExperimentView, row, user=name, counts=counts.get(row.id, {})) for row, name in rows],
        next=cursor,
    )


@router.get("/{experiment_id}")
def get_experiment(experiment_id: str, caller: Reader, service: Current) -> ExperimentDetail:
    """Get an experiment with all its runs, in the requested order."""
    return _detail(service, caller, experiment_id)


@router.get("/{experiment_id}/analysis")
def get_analysis(
    experiment_id: str,
    caller: Reader,
    service: Current,
    measure: Annotated[str | None, Query(max_length=64, description="Replaces the plan's value.")] = None,
) -> dict[str, Any]:
    """Analyze the runs of an experiment that have ended: arms, comparisons with the first one, errors."""
    detail = _detail(service, caller, experiment_id)
    plan = Plan.model_validate(detail.plan) if detail.plan else None
    require_statistics()
    from mleredux_experiments.shared import analyse_runs

    analysis = analyse_runs(_ended(service, detail), plan, measure).document()
    changes = [f"After {change.results} results: {change.what}" for change in detail.changes if change.results]
    return {**analysis, "changes": changes}


@router.get("/{experiment_id}/table")
def get_table(experiment_id: str, caller: Reader, service: Current) -> dict[str, Any]:
    """Get a table of the runs that have ended, with versions and failures, for analysis by the client."""
    detail = _detail(service, caller, experiment_id)
    require_statistics()
    from mleredux_experiments.shared import load_runs

    return load_runs(_ended(service, detail), rollouts=True).document()


@router.post("/{experiment_id}/extend", status_code=201, response_model=ExperimentDetail)
def extend_experiment(
    experiment_id: str, caller: Runner, request: Request, service: Current, body: ExtensionRequest = _NOTHING
) -> Response:
    """Add tasks and seeds to an experiment that has a plan. Either all their runs are created, or none; the change is
    recorded."""
    claim = claim_of(request, caller, body, first=service.database)
    for _ in range(_ATTEMPTS):
        with suppress(Outdated):
            return _extended(service, caller, experiment_id, body, claim)
    raise Problem("conflict", "Other requests are changing the experiment.", hint="Send the request again in a moment.")


@router.post("/{experiment_id}/retry", status_code=202)
def retry_experiment(experiment_id: str, caller: Runner, service: Current) -> ExperimentDetail:
    """Retry all runs that were cancelled, or failed because of the environment or the task; earlier attempts are
    kept."""
    retry_broken(service, caller, find(service, caller, Experiment, experiment_id)[0])
    return _detail(service, caller, experiment_id)


@router.post("/{experiment_id}/cancel", status_code=202, responses={200: {"model": ExperimentDetail}})
def cancel_experiment(experiment_id: str, caller: Runner, service: Current, response: Response) -> ExperimentDetail:
    """Cancel all runs of an experiment. 200 if all have ended already."""
    ids = [run.id for run in _detail(service, caller, experiment_id).runs]
    if not cancel_runs(service, caller, ids, experiment_id):
        response.status_code = 200
    return _detail(service, caller, experiment_id)


def _extended(service: Service, caller: Caller, experiment_id: str, body: ExtensionRequest, claim: Claim) -> Response:
    experiment, user = find(service, caller, Experiment, experiment_id)
    before = _detail(service, caller, experiment_id).runs

    def answer(rows: list[RunRow]) -> Answer:
        views = [run_view(row, caller.user_name, None) for row in rows]
        detail = experiment_detail(experiment, user, [*before, *views])
        return Answer(201, {"Location": f"/v1/experiments/{experiment.id}"}, detail.model_dump_json())

    return answer(extend(service, caller, experiment, body, claim, answer)).response()


def _pinned(service: Service, caller: Caller, body: ExperimentRequest) -> dict[str, str]:
    """Return the exact references of all agents, each checked with all of its options.

    Raises:
        Problem: The caller may not use one of them, or there are too many.
    """
    pinned: dict[str, str] = {}
    for arm in request_of(body).arms.values():
        options = arm.request("")["options"]
        if arm.agent in pinned:
            check_agent(service, caller, pinned[arm.agent], options)
        elif len(pinned) == _MOST_AGENTS:
            raise Problem("too-large", f"The experiment has more than {_MOST_AGENTS} agents.", hint="Split it.")
        else:
            pinned[arm.agent] = pin_agent(service, caller, arm.agent, options)
    return pinned


def _ended(service: Service, detail: ExperimentDetail) -> list[Path]:
    return [service.ended_run(run.id) for run in detail.runs if run.ended_at is not None]


def _detail(service: Service, caller: Caller, experiment_id: str) -> ExperimentDetail:
    """Return an experiment's view.

    Raises:
        Problem: The caller can see no such experiment.
    """
    experiment, user = find(service, caller, Experiment, experiment_id)
    query = shown_runs().where(RunRow.experiment_id == experiment_id).order_by(RunRow.created_at, RunRow.id)
    with service.database.reading() as session:
        rows = session.execute(query).all()
    return experiment_detail(experiment, user, [run_view(row, name or "", job) for row, name, job in rows])


def _counts(session: Session, ids: Sequence[str]) -> dict[str, dict[str, int]]:
    """Count the runs of each experiment by status."""
    query = select(RunRow.experiment_id, RunRow.status, func.count()).where(RunRow.experiment_id.in_(ids))
    counts: dict[str, dict[str, int]] = {}
    for experiment, status, number in session.execute(query.group_by(RunRow.experiment_id, RunRow.status)):
        counts.setdefault(str(experiment), {})[status] = number
    return counts
