"""Making runs: rows and directories, so that a kill at any moment leaves either a whole run or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mleredux import api
from mleredux.errors import MlereduxError
from mleredux.models import Limits, RunSpec
from mleredux.sandboxes.slots import Slots
from mleredux.store import Run, RunStore
from sqlalchemy import delete, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from mleredux_server.accounts import default_project, visible_project
from mleredux_server.admission import check_quota, fit_to_quota
from mleredux_server.database.tables import Experiment, Job, Project, RunLabel, RunRow, now
from mleredux_server.idempotency import Answer, Claim
from mleredux_server.problems import Problem
from mleredux_server.queueing.adoption import write_note
from mleredux_server.schemas.accounts import Quota
from mleredux_server.schemas.runs import ExperimentRequest, HowToRun, RunRequest
from mleredux_server.security import Caller
from mleredux_server.service import Service

MOST_RUNS = 5000
"""Of one experiment."""
_MOST_CONTEXT = 50_000_000
"""Characters of context that the runs of an experiment keep, each its own."""


@dataclass(frozen=True)
class Planned:
    """A run that was checked and is not made yet."""

    id: str
    request: RunRequest
    fields: dict[str, Any]
    """For `RunStore.create`."""
    sandboxes: tuple[str, ...] = ()
    """Where else its agent runs, best first, where the request left that open."""

    @property
    def limits(self) -> Limits:
        """What it may use."""
        limits: Limits = self.fields["limits"]
        return limits


def plan_run(service: Service, request: RunRequest, slots: Slots | None = None) -> Planned:
    """Check what is asked against what is installed and what the machine has.

    Args:
        service: The service.
        request: What is asked.
        slots: What the machine has, where many runs are planned; looked up where None.

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
    (slots or Slots(service.store.path)).fit(fields["limits"])
    more = {"obfuscated": request.obfuscated, "context": request.context, "data_dir": str(service.data.path.resolve())}
    sandboxes: tuple[str, ...] = ()
    if request.sandbox is None:
        installed = service.catalogue.entries("sandboxes")
        agent = service.catalogue.agent(request.agent, request.options)
        sandboxes = tuple(name for name in agent.sandboxes if name in installed)
    return Planned(_id_of(service, fields), request, {**fields, **more}, sandboxes)


def plan_matrix(service: Service, asked: ExperimentRequest) -> list[Planned]:
    """Check a matrix of runs; each task with each agent once, for seeds change nothing.

    Raises:
        Problem: It has no runs, or too many.
        MlereduxError: One of them can't be done here.
    """
    tasks = service.catalogue.task_names(asked.tasks, asked.sets)
    agents, seeds = list(dict.fromkeys(asked.agents)), list(dict.fromkeys(asked.seeds))
    size = len(tasks) * len(agents) * len(seeds)
    if not size:
        raise Problem("invalid", "An experiment needs a task.", hint="Name `tasks`, or `sets` of them.")
    if size > MOST_RUNS or size * len(asked.context or "") > _MOST_CONTEXT:
        raise Problem(
            "too-large",
            f"The experiment has {size} runs; it may have {MOST_RUNS}, and fewer with a long context.",
            hint="Split it into several.",
        )
    how = {name: getattr(asked, name) for name in HowToRun.model_fields}
    slots, planned = Slots(service.store.path), []
    for task in tasks:
        for agent in agents:
            first = plan_run(service, RunRequest(task=task, agent=agent, seed=seeds[0], **how), slots)
            planned.append(first)
            planned += [
                Planned(
                    _id_of(service, first.fields),
                    first.request.model_copy(update={"seed": seed}),
                    {**first.fields, "seed": seed},
                    first.sandboxes,
                )
                for seed in seeds[1:]
            ]
    return planned


def _id_of(service: Service, fields: dict[str, Any]) -> str:
    return service.store.new_id(str(fields["task"]), str(fields["agent"]), 12)


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
    claim: Claim | None = None,
    answer: Callable[[list[RunRow]], Answer] | None = None,
) -> list[RunRow]:
    """Make all runs or none.

    Rows come first, as `creating`; then the directories; then the rows become `queued`. What a kill leaves as
    `creating` was never acknowledged and is removed at the next start.

    Args:
        service: The service.
        caller: Who asks.
        planned: What is to be made.
        how: What is asked of all of them.
        experiment: The matrix they belong to, to be made too; its project is filled in.
        retry_of: The run that they are a new attempt of.
        claim: Of a request that brought an Idempotency-Key; needs `answer`.
        answer: Makes the answer that a repeat of that request gets.

    Raises:
        Replayed: The request came before.
        Problem: A quota does not allow it.
        MlereduxError: A directory can't be made.
    """
    with service.database.writing() as session:
        if claim is not None:
            claim.take(session)
        project = project_for(session, caller, how.project)
        session.refresh(project, with_for_update=True)  # so that nobody else's runs slip under the quota meanwhile
        for one in planned:
            fit_to_quota(Quota.model_validate(project.quota), one.fields, one.request, one.sandboxes)
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
        session.flush()
        session.add_all(
            RunLabel(run_id=row.id, name=name, value=value) for row in rows for name, value in row.labels.items()
        )
    ids = [one.id for one in planned]
    try:
        for one in planned:
            write_note(_make_directory(service.store, one), one.request, retry_of)
    except (MlereduxError, OSError):
        service.left.append((ids, claim))
        with suppress(SQLAlchemyError):  # then the scheduler does it, once the database answers
            settle_left(service)
        raise
    try:
        with service.database.writing() as session:
            for start in range(0, len(ids), 500):
                some = ids[start : start + 500]
                session.execute(update(Job).where(Job.id.in_(some)).values(state="queued", queued_at=now()))
            if claim is not None and answer is not None:
                claim.keep(session, answer(rows))
    except SQLAlchemyError:
        service.left.append((ids, claim))  # it may be committed: who knows, while the database does not answer
        raise
    service.wake.set()
    return rows


def _make_directory(store: RunStore, one: Planned) -> Run:
    """As `RunStore.create`, but for the index, which takes longest and makes anew what it lacks."""
    return Run.create(store.path / one.id, RunSpec(id=one.id, created_at=now(), **one.fields))


def settle_left(service: Service) -> None:
    """Drop what requests left that failed half-way.

    Raises:
        SQLAlchemyError: The database does not answer; what is left stays noted.
    """
    while service.left:
        ids, claim = service.left[0]
        uncreated: list[str] = []
        with service.database.reading() as session:
            for start in range(0, len(ids), 500):
                some = ids[start : start + 500]
                uncreated += session.scalars(select(Job.id).where(Job.id.in_(some), Job.state == "creating"))
        if uncreated:
            drop_uncreated(service, uncreated, claim)
        with suppress(IndexError, ValueError):  # another thread may have done the same
            service.left.remove((ids, claim))


def drop_uncreated(service: Service, ids: Sequence[str], claim: Claim | None = None) -> None:
    """Remove runs that were never acknowledged, their experiments, and the claim of who asked for them."""
    from mleredux.store.trees import remove_tree

    for run_id in ids:
        remove_tree(service.store.path / run_id)
    with service.database.writing() as session:
        experiments: set[str | None] = set()
        for start in range(0, len(ids), 500):
            some = list(ids[start : start + 500])
            experiments |= set(session.scalars(select(RunRow.experiment_id).where(RunRow.id.in_(some)).distinct()))
            session.execute(delete(RunRow).where(RunRow.id.in_(some)))
            session.execute(delete(Job).where(Job.id.in_(some), Job.state == "creating"))
        left = select(RunRow.id).where(RunRow.experiment_id == Experiment.id).exists()
        session.execute(delete(Experiment).where(Experiment.id.in_(experiments - {None}), ~left))
        if claim is not None:
            claim.release(session)


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
        llm_tokens=limits.llm_tokens if one.fields["network"] == "gateway" else None,
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
