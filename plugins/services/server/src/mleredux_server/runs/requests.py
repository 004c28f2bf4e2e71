"""Create runs: the request is checked, then all runs are created, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mleredux.errors import NotGranted
from mleredux.plugin.agent import Agent, Grants
from mleredux.plugin.artifact import Run, RunSpec
from mleredux.plugin.experiment import SET, Cell, Request, RunPlan, other_sandboxes, plan, resolved
from mleredux.plugin.host import Slots
from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import Experiment, Job, Project, RunLabel, RunRow, now
from mleredux_server.operations.traces import traceparent
from mleredux_server.protocol.idempotency import UNCLAIMED, Answer, Claim
from mleredux_server.protocol.problems import Problem, invalid, require_statistics
from mleredux_server.runs.admission import check_quota, fit_to_quota
from mleredux_server.runs.creation import make_jobs
from mleredux_server.runs.references import granted
from mleredux_server.runs.summary import lacks_result
from mleredux_server.scheduler.adoption import columns_of, write_note
from mleredux_server.schemas.accounts import Quota
from mleredux_server.schemas.runs import ExperimentRequest, HowToRun, KeptRequest, RunRequest
from mleredux_server.service import Service

MOST_RUNS = 5000
"""Maximum number of runs in an experiment."""
_MOST_CONTEXT = 50_000_000
"""Total characters of context of an experiment's runs; each run stores its own copy."""

_ARM = ("sandbox", "options", "network", "grants", "obfuscated", "verify", "context")
"""Fields that a request has in common with arms of a plan."""


@dataclass(frozen=True)
class Planned:
    """A run that was checked and is not created yet."""

    id: str
    request: RunRequest
    plan: RunPlan
    sandboxes: tuple[str, ...] = ()
    """Sandboxes that can run its agent, best first, if the request named none."""


def plan_run(service: Service, request: RunRequest) -> Planned:
    """Check a request against the installed plugins and the machine's resources.

    Raises:
        Problem: Its agent requests something that this server does not grant.
        MlereduxError: It can't run here.
    """
    fields = {name: getattr(request, name) for name in _ARM}
    limits = request.limits.model_dump(exclude_none=True)
    runs = Request.single(request.task, request.agent, seed=request.seed, limits=limits, **fields)
    [run] = _plans(service, runs, request)
    return _planned(service, request, run)


def plan_experiment(service: Service, body: ExperimentRequest, pinned: Mapping[str, str]) -> list[Planned]:
    """Check a matrix of runs.

    Args:
        pinned: Exact references, by the references of agents in the request.

    Raises:
        Problem: The matrix has no runs or too many, or a plan names files of the client's machine.
        MlereduxError: One of them can't run here.
    """
    runs = resolved(request_of(body), service.catalogue).pinned(pinned)
    if body.plan is not None and body.plan.stop.rule == "sequential":
        require_statistics()
        from mleredux_experiments.shared import check_sequence

        check_sequence(body.plan, len(runs.tasks))
    size = len(runs.tasks) * len(runs.arms) * len(set(runs.seeds))
    context = max(len(text or "") for arm in runs.arms.values() for text in ("", *arm.contexts.values()))
    if size > MOST_RUNS or size * context > _MOST_CONTEXT:
        raise Problem(
            "too-large",
            f"The experiment has {size} runs; the maximum is {MOST_RUNS}, less with a long context.",
            hint="Split it into several experiments.",
        )
    same = {name: getattr(body, name) for name in ("project", "priority", "preemptible", "labels", "secrets")}
    first: dict[tuple[str, str], Planned] = {}
    planned = []
    for cell, run in zip(runs.cells(), _plans(service, runs, body), strict=True):
        if (cell.arm, cell.task) not in first:
            request = _request(cell, {**runs.arms[cell.arm].request(cell.task), **same})
            first[cell.arm, cell.task] = _planned(service, request, run)
        example = first[cell.arm, cell.task]
        request = example.request.model_copy(update={"seed": cell.seed})
        planned.append(Planned(_new_id(service, run), request, run, example.sandboxes))
    return planned


def _plans(service: Service, runs: Request, how: HowToRun) -> list[RunPlan]:
    """Return the runs of a request, each with the server's grants for its agent, and with limits that this machine can
    meet."""
    if how.secrets and service.settings.store:
        raise Problem("invalid", "The nodes of this server can't get secrets.", hint="Leave `secrets` out.")

    def granted_here(agent: Agent, grants: Grants, network: str | None) -> tuple[Grants, str | None]:
        return granted(service.catalogue, service.settings, agent, grants), network

    try:
        plans = plan(runs, service.catalogue, granted=granted_here)
    except NotGranted as error:
        hint = "Request an open network directly; ask the server administrator for anything else."
        raise Problem("forbidden", error.message, hint=hint) from error
    # The resources available to one run: this machine's, or those of an executor's largest node.
    largest = service.scheduler.largest() if service.scheduler is not None else None
    slots = Slots(service.store.path, largest)
    for limits in {run.limits.model_dump_json(): run.limits for run in plans}.values():
        slots.fit(limits)
    if service.settings.verify:
        unset = {name for name, arm in runs.arms.items() if arm.verify is None}
        plans = [
            run.model_copy(update={"verify": True}) if cell.arm in unset else run
            for cell, run in zip(runs.cells(), plans, strict=True)
        ]
    return plans


def _planned(service: Service, request: RunRequest, run: RunPlan) -> Planned:
    sandboxes = other_sandboxes(run, service.catalogue) if request.sandbox is None else ()
    return Planned(_new_id(service, run), request, run, sandboxes)


def request_of(body: ExperimentRequest) -> Request:
    """Return the runs of a request, with an arm for each agent if it has no plan.

    Raises:
        Problem: The request has neither a plan nor tasks and agents, or has both.
    """
    if body.plan is None:
        if not (body.agents and (body.tasks or body.sets)):
            hint = "Set `tasks` and `agents`, or `plan`."
            raise Problem("invalid", "An experiment needs tasks and agents.", hint=hint)
        limits = body.limits.model_dump(exclude_none=True)
        tasks = (*body.tasks, *(f"{SET}{name}" for name in body.sets))
        fields = {name: getattr(body, name) for name in _ARM}
        return Request.matrix(tasks, body.agents, body.seeds, limits=limits, **fields)
    besides = {"plan", "name", "project", "priority", "preemptible", "labels", "secrets"}
    if other := body.model_fields_set - besides:
        raise Problem("invalid", f"A plan can't be combined with {', '.join(sorted(other))}.", hint="Send only one.")
    request = body.plan.request
    for name, arm in request.arms.items():
        if arm.context is not None or arm.image is not None:
            field = "context" if arm.context is not None else "image"
            hint = (
                "Send the texts as `contexts`." if field == "context" else "Base images are configured on the server."
            )
            raise Problem("invalid", f"Arm {name[:200]} sets {field}, which is on another machine.", hint=hint)
    return request


def _request(cell: Cell, how: dict[str, Any]) -> RunRequest:
    try:
        return RunRequest(seed=cell.seed, **how)
    except ValidationError as error:
        detail = invalid(error.errors(include_url=False), RunRequest).detail
        raise Problem("invalid", f"Arm {cell.arm[:200]}: {detail}", hint="Change the plan.") from None


def _new_id(service: Service, run: RunPlan) -> str:
    return service.store.new_id(run.task, run.agent, 12, obfuscated=run.obfuscated)


def make_runs(
    service: Service,
    caller: Caller,
    planned: Sequence[Planned],
    how: HowToRun,
    *,
    experiment: Experiment | None = None,
    larger: Callable[[Experiment], None] | None = None,
    retry_of: str | None = None,
    claim: Claim = UNCLAIMED,
    answer: Callable[[list[RunRow]], Answer] | None = None,
) -> list[RunRow]:
    """Create all runs or none.

    Args:
        service: The service.
        caller: The requesting user.
        planned: The runs to create.
        how: Settings common to all of them.
        experiment: The matrix they belong to; a new one is created with them, and its project is filled in.
        larger: Changes the matrix's current row, in the transaction that creates the runs.
        retry_of: The run that they retry.
        claim: For a request with an Idempotency-Key; needs `answer`.
        answer: Builds the response for a repeated request.

    Raises:
        Replayed: The request is a repeat.
        Problem: A quota does not allow it, or another request has created one of an experiment's runs.
        MlereduxError: A directory can't be created.
    """

    installed = service.catalogue.capabilities()
    admitted: list[Planned] = []

    def rows(session: Session, project: Project) -> list[RunRow]:
        quota = Quota.model_validate(project.quota)
        owner = {"project": project.id, "experiment": experiment.id if experiment else None}
        fitted = [fit_to_quota(quota, run.plan, run.request, run.sandboxes, installed) for run in planned]
        admitted[:] = [
            replace(run, request=_kept(run.request, caller), plan=plan.model_copy(update=owner))
            for run, plan in zip(planned, check_quota(session, project, fitted, installed), strict=True)
        ]
        if experiment is not None:
            experiment.project_id = project.id
            there = session.get(Experiment, experiment.id, with_for_update=True, populate_existing=True)
            if there is None:
                session.add(experiment)
            else:
                if larger is not None:
                    larger(there)
                _check_free(session, there, admitted)
            session.flush()
        created = []
        for run in admitted:
            job, row = columns_of(run.plan, run.id, run.request, now(), project.id, caller.user_id)
            session.add(Job(**job))
            created.append(RunRow(**row, experiment_id=run.plan.experiment, retry_of=retry_of))
            session.add(created[-1])
        session.flush()
        session.add_all(
            RunLabel(run_id=row.id, name=name, value=value) for row in created for name, value in row.labels.items()
        )
        return created

    def folders() -> None:
        for run in admitted:
            write_note(_make_directory(service, run), run.request, retry_of)

    ids = [run.id for run in planned]
    return make_jobs(service, caller, ids, how.project, rows=rows, folders=folders, answer=answer, claim=claim)


def _check_free(session: Session, experiment: Experiment, planned: Sequence[Planned]) -> None:
    """Check that no run of these cells has a result or may still get one, while the experiment's row is locked.

    Raises:
        Problem: One of the runs does, because of another request.
    """
    cells = {(run.plan.arm, run.plan.agent, run.plan.task, run.plan.seed) for run in planned}
    for row in session.scalars(select(RunRow).where(RunRow.experiment_id == experiment.id)):
        if (row.arm, row.agent, row.task, row.seed) in cells and not lacks_result(row.status, row.cause):
            raise Problem("conflict", "Another request created these runs.", hint="Get the experiment to see them.")


def _make_directory(service: Service, run: Planned) -> Run:
    """Create a run like `RunStore.create`, but without the index, which takes the longest and restores missing entries
    on its own."""
    data_dir = str(service.data.path.resolve())
    spec = RunSpec(id=run.id, created_at=now(), data_dir=data_dir, **dict(run.plan))
    return Run.create(service.store.path / run.id, spec)


def _kept(request: RunRequest, caller: Caller) -> KeptRequest:
    """Return the request to store; a token that is limited to a project gives no access to its user's own secrets."""
    only = getattr(request, "project_secrets", False) or caller.bound_to is not None
    return KeptRequest.model_construct(**{**dict(request), "project_secrets": only, "traceparent": traceparent()})
