"""Convert rows of the database to response models."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeVar

from mleredux_http_api import RunView
from pydantic import BaseModel
from sqlalchemy.orm import Session

from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import Base, Experiment, Job, Project, RunRow, User
from mleredux_server.protocol.idempotency import Answer
from mleredux_server.runs.admission import usage_of
from mleredux_server.runs.summary import OPEN
from mleredux_server.scheduler.decision import TURN
from mleredux_server.schemas.accounts import ProjectView, Quota
from mleredux_server.schemas.runs import ExperimentDetail

_View = TypeVar("_View", bound=BaseModel)


def as_view(model: type[_View], row: Base, **fields: Any) -> _View:
    """Convert a row to a view: fields have the same names, `project` and `experiment` are ids.

    Args:
        model: Class of the view.
        row: Row of the database.
        fields: Values of fields that the row does not have.
    """
    for name in model.model_fields.keys() - fields.keys():
        fields[name] = getattr(row, f"{name}_id" if name in ("project", "experiment") else name)
    return model(**fields)


def run_view(row: RunRow, user: User | str, job: Job | None, failure: str | None = None) -> RunView:
    """Return a run's view."""
    name = user if isinstance(user, str) else user.name
    return as_view(RunView, row, user=name, waiting_for=waiting_for(row, job, failure))


def waiting_for(row: RunRow, job: Job | None, failure: str | None = None) -> str | None:
    """Return the reason why a run waits: in the queue, or on an executor during an outage; None if it does not.

    Args:
        row: The run.
        job: Its job; None if it was just created.
        failure: Why the scheduler can't start or follow runs now; such a reason can't be stored.
    """
    if failure is not None and row.status in OPEN:
        return failure
    if job is None:
        return TURN if row.status == "queued" else None
    return job.waiting_for or (TURN if job.state == "queued" else None)


def run_created(rows: list[RunRow], caller: Caller) -> Answer:
    """Return the response to the request that created a run."""
    shown = run_view(rows[0], caller.user_name, None)
    return Answer(201, {"Location": f"/v1/runs/{shown.id}"}, shown.model_dump_json())


def experiment_detail(experiment: Experiment, user: str, runs: list[RunView]) -> ExperimentDetail:
    """Return a matrix with its runs."""
    counts = dict(Counter(run.status for run in runs))
    fields = {name: experiment.request.get(name) for name in ("plan", "spent", "stopped")}
    fields["changes"] = experiment.request.get("changes", [])
    return as_view(ExperimentDetail, experiment, user=user, counts=counts, runs=runs, **fields)


def project_view(session: Session, project: Project, caller: Caller) -> ProjectView:
    """Return a project's view for a caller."""
    quota = Quota.model_validate(project.quota)
    return as_view(
        ProjectView, project, role=caller.projects.get(project.id), quota=quota, usage=usage_of(session, project)
    )
