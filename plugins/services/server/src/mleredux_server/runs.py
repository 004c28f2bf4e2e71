"""Making runs: rows and directories, so that a kill at any moment leaves either a whole run or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mleredux import api
from mleredux.errors import MlereduxError
from mleredux.models import Limits
from mleredux.sandboxes.slots import Slots
from sqlalchemy import delete, update
from sqlalchemy.orm import Session

from mleredux_server.accounts import default_project, visible_project
from mleredux_server.admission import check_quota
from mleredux_server.database.tables import Experiment, Job, Project, RunRow, now
from mleredux_server.problems import Problem
from mleredux_server.queueing.adoption import write_note
from mleredux_server.schemas.runs import HowToRun, RunRequest
from mleredux_server.security import Caller
from mleredux_server.service import Service


@dataclass(frozen=True)
class Planned:
    """A run that was checked and is not made yet."""

    id: str
    request: RunRequest
    fields: dict[str, Any]
    """For `RunStore.create`."""

    @property
    def limits(self) -> Limits:
        """What it may use."""
        limits: Limits = self.fields["limits"]
        return limits


def plan_run(service: Service, request: RunRequest) -> Planned:
    """Check what is asked against what is installed and what the machine has.

    Raises:
        MlereduxError: It can't be done here.
    """
    fields = api.plan(
        service.catalogue,
        request.task,
        request.agent,
        sandbox=request.sandbox,
        seed=request.seed,
        limits=request.limits.model_dump(exclude_none=True),
        options=request.options,
        network=request.network,
    )
    Slots(service.store.path).fit(fields["limits"])
    more = {"obfuscated": request.obfuscated, "context": request.context, "data_dir": str(service.data.path.resolve())}
    return Planned(service.store.new_id(str(fields["task"]), str(fields["agent"]), 12), request, {**fields, **more})


def project_for(session: Session, caller: Caller, asked: str | None) -> Project:
    """The project that something is made in: the one that is named, or the caller's own.

    Raises:
        Problem: There is none that they may see.
    """
    if asked is not None:
        return visible_project(session, caller, asked)
    mine = default_project(session, caller)
    if mine is None:
        raise Problem("forbidden", "You are in no project.", hint="Ask who runs the server for one.")
    return mine


def make_runs(
    service: Service,
    caller: Caller,
    planned: Sequence[Planned],
    how: HowToRun,
    *,
    experiment: Experiment | None = None,
    retry_of: str | None = None,
) -> list[RunRow]:
    """Make all runs or none.

    Rows come first, as `creating`; then the directories; then the rows become `queued`. What a kill leaves as
    `creating` was never acknowledged and is removed at the next start.

    Raises:
        Problem: A quota does not allow it.
        MlereduxError: A directory can't be made.
    """
    with service.database.writing() as session:
        project = project_for(session, caller, how.project)
        check_quota(session, project, [one.fields for one in planned])
        if experiment is not None:
            experiment.project_id = project.id
            session.add(experiment)
            session.flush()
        rows = []
        for one in planned:
            job, row = _rows(one, caller, project, experiment, retry_of)
            session.add(job)
            session.add(row)
            rows.append(row)
    try:
        for one in planned:
            write_note(service.store.create(one.id, **one.fields), one.request, retry_of)
    except (MlereduxError, OSError):
        drop_uncreated(service, [one.id for one in planned], experiment)
        raise
    with service.database.writing() as session:
        ids = [one.id for one in planned]
        for start in range(0, len(ids), 500):
            some = ids[start : start + 500]
            session.execute(update(Job).where(Job.id.in_(some)).values(state="queued", queued_at=now()))
    service.wake.set()
    return rows


def drop_uncreated(service: Service, ids: Sequence[str], experiment: Experiment | None = None) -> None:
    """Remove runs that were never acknowledged."""
    from mleredux.store.trees import remove_tree

    for run_id in ids:
        remove_tree(service.store.path / run_id)
    with service.database.writing() as session:
        for start in range(0, len(ids), 500):
            some = list(ids[start : start + 500])
            session.execute(delete(RunRow).where(RunRow.id.in_(some)))
            session.execute(delete(Job).where(Job.id.in_(some), Job.state == "creating"))
        if experiment is not None:
            session.execute(delete(Experiment).where(Experiment.id == experiment.id))


def _rows(
    one: Planned, caller: Caller, project: Project, experiment: Experiment | None, retry_of: str | None
) -> tuple[Job, RunRow]:
    limits, request = one.limits, one.request
    created = now()
    job = Job(
        id=one.id,
        kind="run",
        project_id=project.id,
        user_id=caller.user_id,
        priority=request.priority,
        cpus=limits.cpus,
        memory_mb=limits.memory_mb,
        gpus=limits.gpus,
        disk_mb=limits.disk_mb,
        llm_tokens=limits.llm_tokens,
        created_at=created,
    )
    row = RunRow(
        id=one.id,
        project_id=project.id,
        user_id=caller.user_id,
        experiment_id=experiment.id if experiment else None,
        retry_of=retry_of,
        task=one.fields["task"],
        agent=one.fields["agent"],
        sandbox=one.fields["sandbox"],
        seed=one.fields["seed"],
        network=one.fields["network"],
        obfuscated=request.obfuscated,
        priority=request.priority,
        limits=limits.model_dump(mode="json"),
        options=one.fields["options"],
        labels=request.labels,
        request=request.model_dump(mode="json"),
        created_at=created,
        updated_at=created,
    )
    return job, row
