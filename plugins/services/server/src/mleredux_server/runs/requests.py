"""Create runs: the request is checked, then everything is created, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mleredux.errors import NotGranted
from mleredux.plugin.agent import Limits
from mleredux.plugin.artifact import Run, RunSpec, RunStore
from mleredux.plugin.experiment import Cell, Plan, plan_of, plan_tasks
from mleredux.plugin.host import Slots, plan
from mleredux.plugin.sandbox import fitting, needs_of
from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import Experiment, Job, Project, RunLabel, RunRow, now
from mleredux_server.operations.traces import here
from mleredux_server.protocol.idempotency import Answer, Claim
from mleredux_server.protocol.problems import Problem, invalid
from mleredux_server.runs.admission import check_quota, fit_to_quota
from mleredux_server.runs.creation import make_jobs
from mleredux_server.runs.references import granted
from mleredux_server.runs.summary import lacks_result
from mleredux_server.scheduler.adoption import write_note
from mleredux_server.schemas.accounts import Quota
from mleredux_server.schemas.runs import ExperimentRequest, HowToRun, KeptRequest, RunRequest
from mleredux_server.service import Service

MOST_RUNS = 5000
"""Maximum number of runs of one experiment."""
_MOST_CONTEXT = 50_000_000
"""Total characters of context of an experiment's runs; each run stores its own copy."""


@dataclass(frozen=True)
class Planned:
    """A run that was checked and is not created yet."""

    id: str
    request: RunRequest
    fields: dict[str, Any]
    """Arguments of `RunStore.create`."""
    sandboxes: tuple[str, ...] = ()
    """Other sandboxes that can run its agent, best first, if the request named none."""

    @property
    def limits(self) -> Limits:
        """The resources it may use."""
        limits: Limits = self.fields["limits"]
        return limits


def slots_of(service: Service) -> Slots:
    """The resources that one run can have: this machine's, or those of an executor's largest node."""
    largest = service.scheduler.largest() if service.scheduler is not None else None
    return Slots(service.store.path, largest)


def plan_run(service: Service, request: RunRequest, slots: Slots | None = None) -> Planned:
    """Check a request against the installed plugins and the machine's resources.

    Args:
        service: The service.
        request: The requested run.
        slots: The machine's resources, passed if many runs are planned; looked up if None.

    Raises:
        Problem: Its agent asks for something that this server does not grant.
        MlereduxError: It can't run here.
    """
    if request.secrets and service.settings.store:
        raise Problem("invalid", "The nodes of this server can't get secrets.", hint="Leave `secrets` out.")
    agent = service.catalogue.agent(request.agent, request.options)
    try:
        fields = plan(
            service.catalogue,
            request.task,
            request.agent,
            sandbox=request.sandbox,
            seed=request.seed,
            limits=request.limits.model_dump(exclude_none=True),
            options=request.options,
            network=request.network,
            grants=granted(service.catalogue, service.settings, agent, request.grants),
        )
    except NotGranted as error:
        hint = "An open network is granted by requesting it; ask the server administrator for anything else."
        raise Problem("forbidden", error.message, hint=hint) from error
    (slots or slots_of(service)).fit(fields["limits"])
    more = {
        "obfuscated": request.obfuscated,
        "verify": service.settings.verify if request.verify is None else request.verify,
        "context": request.context,
        "data_dir": str(service.data.path.resolve()),
    }
    sandboxes: tuple[str, ...] = ()
    if request.sandbox is None:
        needs = needs_of(
            agent, network=fields["network"], gpus=fields["limits"].gpus, hosts=bool(fields["grants"].hosts)
        )
        sandboxes = tuple(fitting(needs, service.catalogue.capabilities()))
    return Planned(_id_of(service, fields), request, {**fields, **more}, sandboxes)


def plan_matrix(service: Service, asked: ExperimentRequest, pinned: Mapping[str, str]) -> list[Planned]:
    """Check a matrix of runs; each task with each arm once, as seeds make no difference.

    Args:
        pinned: Exact references by the agents that the plan names.

    Raises:
        Problem: It has no runs, or too many, or a plan names files of the client's machine.
        MlereduxError: One of them can't run here.
    """
    matrix = matrix_of(asked)
    if matrix.stop.rule == "sequential" and not service.catalogue.hook("mleredux_decide_plan").get_hookimpls():
        hint = "Its administrator installs mleredux-experiments; budgets need nothing."
        raise Problem("invalid", "This server can't stop experiments by the sequential rule.", hint=hint)
    tasks, arms = plan_tasks(service.catalogue, matrix), matrix.all_arms()
    size = len(tasks) * len(arms) * len(set(matrix.experiment.seeds))
    context = max(len(text or "") for arm in arms.values() for text in ("", *arm.contexts.values()))
    if size > MOST_RUNS or size * context > _MOST_CONTEXT:
        raise Problem(
            "too-large",
            f"The experiment has {size} runs; the maximum is {MOST_RUNS}, less with a long context.",
            hint="Split it into several experiments.",
        )
    same = {name: getattr(asked, name) for name in ("project", "priority", "preemptible", "labels", "secrets")}
    slots, first, planned = slots_of(service), dict[tuple[str, str], Planned](), []
    for cell in matrix.cells(tasks):
        found = first.get((cell.arm, cell.task))
        if found is None:
            how = arms[cell.arm].request(cell.task)
            how["agent"] = pinned.get(how["agent"], how["agent"])
            found = plan_run(service, _request(cell, {**how, **same}), slots)
            first[cell.arm, cell.task] = found
        planned.append(
            Planned(
                _id_of(service, found.fields),
                found.request.model_copy(update={"seed": cell.seed}),
                {**found.fields, "seed": cell.seed, "arm": cell.arm if asked.plan else None},
                found.sandboxes,
            )
        )
    return planned


def matrix_of(asked: ExperimentRequest) -> Plan:
    """The plan of a request; of one without, an arm for each agent.

    Raises:
        Problem: It has neither a plan nor tasks and agents, or both.
    """
    if asked.plan is None:
        if not (asked.agents and (asked.tasks or asked.sets)):
            raise Problem(
                "invalid", "An experiment needs tasks and agents.", hint="Set `tasks` and `agents`, or `plan`."
            )
        limits = asked.limits.model_dump(exclude_none=True)
        names = ("sandbox", "options", "network", "grants", "obfuscated", "verify", "context")
        same = {name: getattr(asked, name) for name in names}
        return plan_of(asked.tasks, asked.sets, asked.agents, asked.seeds, limits=limits, **same)
    besides = {"plan", "name", "project", "priority", "preemptible", "labels", "secrets"}
    if other := asked.model_fields_set - besides:
        raise Problem("invalid", f"A plan can't be combined with {', '.join(sorted(other))}.", hint="Give one of them.")
    for name, arm in asked.plan.all_arms().items():
        if arm.context is not None or arm.image is not None:
            field = "context" if arm.context is not None else "image"
            hint = (
                "Send the texts as `contexts`." if field == "context" else "Base images are configured on the server."
            )
            raise Problem("invalid", f"Arm {name[:200]} names {field}, which is of another machine.", hint=hint)
    return asked.plan


def _request(cell: Cell, how: dict[str, Any]) -> RunRequest:
    try:
        return RunRequest(seed=cell.seed, **how)
    except ValidationError as error:
        said = invalid(error.errors(include_url=False), RunRequest).detail
        raise Problem("invalid", f"Arm {cell.arm[:200]}: {said}", hint="Change the plan.") from None


def _id_of(service: Service, fields: dict[str, Any]) -> str:
    hidden = bool(fields.get("obfuscated"))
    return service.store.new_id(str(fields["task"]), str(fields["agent"]), 12, obfuscated=hidden)


def make_runs(
    service: Service,
    caller: Caller,
    planned: Sequence[Planned],
    how: HowToRun,
    *,
    experiment: Experiment | None = None,
    larger: Callable[[Experiment], None] | None = None,
    retry_of: str | None = None,
    claim: Claim | None = None,
    answer: Callable[[list[RunRow]], Answer] | None = None,
) -> list[RunRow]:
    """Create all runs or none.

    Args:
        service: The service.
        caller: The requesting user.
        planned: The runs to create.
        how: Settings common to all of them.
        experiment: The matrix they belong to; a new one is created with them, and its project is filled in.
        larger: Changes the matrix as it is by then, in the transaction that creates the runs.
        retry_of: The run that they retry.
        claim: For a request with an Idempotency-Key; needs `answer`.
        answer: Builds the response for a repeated request.

    Raises:
        Replayed: The request is a repeat.
        Problem: A quota does not allow it, or another request has created one of an experiment's runs.
        MlereduxError: A directory can't be created.
    """

    planned = [replace(one, request=_kept(one.request, caller)) for one in planned]
    installed = service.catalogue.capabilities()

    def rows(session: Session, project: Project) -> list[RunRow]:
        for one in planned:
            fit_to_quota(Quota.model_validate(project.quota), one.fields, one.request, one.sandboxes, installed)
            one.fields.update(project=project.id, experiment=experiment.id if experiment else None)
        check_quota(session, project, [one.fields for one in planned], installed)
        if experiment is not None:
            experiment.project_id = project.id
            there = session.get(Experiment, experiment.id, with_for_update=True, populate_existing=True)
            if there is None:
                session.add(experiment)
            else:
                if larger is not None:
                    larger(there)
                _check_free(session, there, planned)
            session.flush()
        made = []
        for one in planned:
            job, row = _rows(one, caller, project, experiment, retry_of)
            session.add(job)
            session.add(row)
            made.append(row)
        session.flush()
        session.add_all(
            RunLabel(run_id=row.id, name=name, value=value) for row in made for name, value in row.labels.items()
        )
        return made

    def folders() -> None:
        for one in planned:
            write_note(_make_directory(service.store, one), one.request, retry_of)

    ids = [one.id for one in planned]
    return make_jobs(service, caller, ids, how.project, rows=rows, folders=folders, answer=answer, claim=claim)


def _check_free(session: Session, experiment: Experiment, planned: Sequence[Planned]) -> None:
    """Check that no run of these cells has a result or may still get one; the experiment's row is locked.

    Raises:
        Problem: One does, by another request.
    """
    names = ("arm", "agent", "task", "seed")
    cells = {tuple(one.fields.get(name) for name in names) for one in planned}
    for row in session.scalars(select(RunRow).where(RunRow.experiment_id == experiment.id)):
        if tuple(getattr(row, name) for name in names) in cells and not lacks_result(row.status, row.cause):
            raise Problem("conflict", "Another request created these runs.", hint="Get the experiment to see them.")


def _make_directory(store: RunStore, one: Planned) -> Run:
    """As `RunStore.create`, but without the index, which takes longest and restores missing entries itself."""
    return Run.create(store.path / one.id, RunSpec(id=one.id, created_at=now(), **one.fields))


def _kept(request: RunRequest, caller: Caller) -> KeptRequest:
    """The request to store; a token that is limited to a project lends no secrets of its user."""
    only = getattr(request, "project_secrets", False) or caller.bound_to is not None
    return KeptRequest.model_construct(**{**dict(request), "project_secrets": only, "traceparent": here()})


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
        preemptible=request.preemptible,
        **limits.model_dump(include={"cpus", "memory_mb", "gpus", "disk_mb"}),
        llm_tokens=limits.llm_tokens if one.fields["network"] == "gateway" else None,
        created_at=created,
    )
    row = RunRow(
        id=one.id,
        project_id=project.id,
        user_id=caller.user_id,
        experiment_id=experiment.id if experiment else None,
        arm=one.fields.get("arm"),
        retry_of=retry_of,
        **{name: one.fields[name] for name in ("task", "agent", "sandbox", "seed", "network", "options")},
        obfuscated=request.obfuscated,
        priority=request.priority,
        preemptible=request.preemptible,
        limits=limits.model_dump(mode="json"),
        labels=request.labels,
        request=request.model_dump(mode="json"),
        created_at=created,
        updated_at=created,
    )
    return job, row
