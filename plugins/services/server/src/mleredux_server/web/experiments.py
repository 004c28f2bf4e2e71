"""The experiments that a user may see, in the form that the pages of experiments use."""

from __future__ import annotations

from mleredux.plugin.agent import Limits
from mleredux.plugin.experiment import Cell, Design, Plan, Request, RunPlan
from mleredux.plugin.page import StoredExperiment
from sqlalchemy import select
from sqlalchemy.orm import Session

from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import Experiment, RunRow
from mleredux_server.runs.lists import visible_to
from mleredux_server.runs.requests import request_of
from mleredux_server.schemas.runs import ExperimentRequest
from mleredux_server.service import Service

_SHOWN = 200


def stored_experiments(service: Service, caller: Caller, experiment: str | None) -> list[StoredExperiment]:
    """Return the newest experiments, without cells, or the one with this id, if the caller may see it."""
    query = select(Experiment).where(*visible_to(caller, Experiment.project_id))
    query = query.order_by(Experiment.created_at.desc(), Experiment.id.desc()).limit(_SHOWN)
    if experiment is not None:
        query = query.where(Experiment.id == experiment)
    with service.database.reading() as session:
        return [_stored(session, row, experiment is not None) for row in session.scalars(query)]


def _stored(session: Session, row: Experiment, with_cells: bool) -> StoredExperiment:
    fields = {name: value for name, value in row.request.items() if name in ExperimentRequest.model_fields}
    body = ExperimentRequest.model_validate(fields)
    plan = body.plan or _plan_of(request_of(body), row.id)
    plan = plan.model_copy(update={"experiment": plan.experiment.model_copy(update={"name": row.id})})
    cells = list(_cells(session, row.id, plan).items()) if with_cells else []
    changes, stopped = row.request.get("changes", []), row.request.get("stopped")
    return StoredExperiment(row.id, row.name, plan, row.created_at, cells, changes, stopped)


def _plan_of(request: Request, name: str) -> Plan:
    """Return the plan of an experiment that was requested without one."""
    arms = {f"arm-{number}": arm for number, arm in enumerate(request.arms.values())}
    design = Design(name=name, tasks=request.tasks, seeds=request.seeds, order=request.order)
    return Plan(experiment=design, arms=arms)


def _cells(session: Session, experiment: str, plan: Plan) -> dict[Cell, RunPlan]:
    """Return the cells of existing runs; all runs exist from the beginning. Without a plan, each agent is an arm."""
    names = (RunRow.arm, RunRow.agent, RunRow.task, RunRow.sandbox, RunRow.seed, RunRow.limits)
    query = select(*names).where(RunRow.experiment_id == experiment).order_by(RunRow.created_at, RunRow.id)
    arms, cells = plan.all_arms(), dict[Cell, RunPlan]()
    for run in session.execute(query):
        arm = run.arm or run.agent
        variant = f"+{arms[arm].variant}" if arm in arms and arms[arm].variant else ""
        limits = Limits.model_validate(run.limits)
        planned = RunPlan(task=run.task, agent=run.agent, sandbox=run.sandbox, seed=run.seed, limits=limits)
        cells.setdefault(Cell(arm, run.task.removesuffix(variant), run.seed), planned)
    return cells
