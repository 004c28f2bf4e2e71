"""Rows of the database as what goes over the wire."""

from __future__ import annotations

from collections import Counter

from sqlalchemy.orm import Session

from mleredux_server.admission import usage_of
from mleredux_server.database.tables import Experiment, Job, Project, RunRow, Token, User
from mleredux_server.idempotency import Answer
from mleredux_server.scheduler.decision import TURN
from mleredux_server.schemas.accounts import ProjectView, Quota, TokenView, UserView
from mleredux_server.schemas.runs import ExperimentDetail, ExperimentView, RunView
from mleredux_server.security import Caller


def run_view(row: RunRow, user: User | str, job: Job | None) -> RunView:
    """A run as it is shown."""
    return RunView(
        id=row.id,
        task=row.task,
        agent=row.agent,
        sandbox=row.sandbox,
        seed=row.seed,
        network=row.network,
        limits=row.limits,
        options=row.options,
        obfuscated=row.obfuscated,
        labels=row.labels,
        project=row.project_id,
        user=user if isinstance(user, str) else user.name,
        experiment=row.experiment_id,
        retry_of=row.retry_of,
        priority=row.priority,
        status=row.status,
        cause=row.cause,
        message=row.message,
        waiting_for=_waiting_for(row, job),
        score=row.score,
        medal=row.medal,
        valid=row.valid,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        updated_at=row.updated_at,
    )


def _waiting_for(row: RunRow, job: Job | None) -> str | None:
    if job is None:  # of a run that has just been made
        return TURN if row.status == "queued" else None
    return (job.waiting_for or TURN) if job.state == "queued" else None


def run_made(row: RunRow, user: str) -> Answer:
    """The answer to who made a run."""
    view = run_view(row, user, None)
    return Answer(201, {"Location": f"/v1/runs/{view.id}"}, view.model_dump_json())


def experiment_view(experiment: Experiment, user: str, counts: dict[str, int]) -> ExperimentView:
    """A matrix of runs as it is listed."""
    return ExperimentView(
        id=experiment.id,
        name=experiment.name,
        project=experiment.project_id,
        user=user,
        created_at=experiment.created_at,
        counts=counts,
    )


def experiment_detail(experiment: Experiment, user: str, runs: list[RunView]) -> ExperimentDetail:
    """A matrix with its runs."""
    view = experiment_view(experiment, user, dict(Counter(run.status for run in runs)))
    return ExperimentDetail(**view.model_dump(), runs=runs)


def user_view(user: User) -> UserView:
    """A user as they are shown."""
    return UserView(
        id=user.id, name=user.name, admin=user.admin, created_at=user.created_at, disabled_at=user.disabled_at
    )


def token_view(token: Token, user: str) -> TokenView:
    """A token as it is shown."""
    return TokenView(
        id=token.id,
        name=token.name,
        user=user,
        scopes=token.scopes,
        project=token.project_id,
        created_at=token.created_at,
        expires_at=token.expires_at,
        last_used_at=token.last_used_at,
    )


def project_view(session: Session, project: Project, caller: Caller) -> ProjectView:
    """A project as it is shown to somebody."""
    return ProjectView(
        id=project.id,
        name=project.name,
        role=caller.projects.get(project.id),
        quota=Quota.model_validate(project.quota),
        usage=usage_of(session, project),
        created_at=project.created_at,
    )
