"""Rows of the database as what goes over the wire."""

from __future__ import annotations

from mleredux_server.database.tables import Job, RunRow, User
from mleredux_server.schemas.runs import RunView


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
        waiting_for=job.waiting_for if job is not None and job.state == "queued" else None,
        score=row.score,
        medal=row.medal,
        valid=row.valid,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        updated_at=row.updated_at,
    )
