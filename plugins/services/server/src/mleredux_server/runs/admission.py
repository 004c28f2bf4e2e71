"""Check requests against a project's quota; the scheduler decides which jobs must wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mleredux.models.formats import plain
from mleredux.plugin.agent import Limits
from mleredux.plugin.experiment import RunPlan
from mleredux.plugin.sandbox import Capabilities
from mleredux_http_api import Usage
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from mleredux_server.database.tables import Job, Project, Source
from mleredux_server.protocol.problems import Problem
from mleredux_server.schemas.accounts import ISOLATED, Quota
from mleredux_server.schemas.runs import HowToRun

_LEAST = {"memory_mb": 63}
"""The minimum limits of a run; if less is left in the quota, the run is refused."""
_MOST_WAITING = {"build": (100, "builds"), "grade": (1000, "submissions")}
"""Maximum number of unfinished jobs of one project by type, and the name of the type."""


def usage_of(session: Session, project: Project) -> Usage:
    """Return the current usage of a project."""
    unfinished = session.execute(
        select(
            Job.state,
            func.count(),
            func.sum(Job.cpus),
            func.sum(Job.memory_mb),
            func.sum(Job.gpus),
            func.sum(Job.llm_tokens),
        )
        .where(Job.project_id == project.id, Job.state.in_(("creating", "queued", "started")), Job.kind == "run")
        .group_by(Job.state)
    ).all()
    running = next((row for row in unfinished if row[0] == "started"), ("started", 0, 0, 0, 0, 0))
    disk = session.scalar(select(func.sum(Job.disk_mb)).where(Job.project_id == project.id)) or 0
    uploaded = session.scalar(select(func.sum(Source.size)).where(Source.project_id == project.id)) or 0
    return Usage(
        running_runs=running[1],
        queued_runs=sum(row[1] for row in unfinished) - running[1],
        cpus=running[2],
        memory_mb=running[3],
        gpus=running[4],
        disk_mb=disk + -(-int(uploaded) // 2**20),
        llm_tokens=project.llm_tokens_used + sum(int(row[5] or 0) for row in unfinished),
    )


def fit_to_quota(
    quota: Quota,
    run: RunPlan,
    request: HowToRun,
    sandboxes: Sequence[str],
    installed: Mapping[str, Capabilities],
) -> RunPlan:
    """Fit the agent's default limits and the sandbox to a quota, unless the request sets them.

    Args:
        quota: The project's quota.
        run: The run with the agent's defaults.
        request: Limits that were requested explicitly, and are not changed.
        sandboxes: Sandboxes that can run the agent, best first.
        installed: Capabilities of each sandbox.
    """
    most = {"cpus": quota.cpus, "memory_mb": quota.memory_mb, "time_limit": quota.max_time_limit}
    named = request.limits.model_fields_set
    smaller = {
        name: value
        for name, value in most.items()
        if value is not None and name not in named and _LEAST.get(name, 0) < value < getattr(run.limits, name)
    }
    limits = Limits.model_validate({**run.limits.model_dump(), **smaller}) if smaller else run.limits
    sandbox = run.sandbox
    if request.sandbox is None and not allows(quota, sandbox, installed):
        sandbox = next((name for name in sandboxes if allows(quota, name, installed)), sandbox)
    return run.model_copy(update={"limits": limits, "sandbox": sandbox})


def allows(quota: Quota, sandbox: str, installed: Mapping[str, Capabilities]) -> bool:
    """Return whether agents of a project with this quota may run in a sandbox."""
    if quota.sandboxes is None or sandbox in quota.sandboxes:
        return True
    return ISOLATED in quota.sandboxes and sandbox in installed and installed[sandbox].isolated


def check_quota(
    session: Session, project: Project, runs: Sequence[RunPlan], installed: Mapping[str, Capabilities]
) -> Sequence[RunPlan]:
    """Check that runs may be created in a project; return them with their shares of its LLM tokens.

    If the project's LLM tokens are limited, the remaining ones are divided among the runs that request no number, so
    that the runs together can't exceed the quota.

    Raises:
        Problem: The quota rules them out, however long they wait.
    """
    quota, usage = Quota.model_validate(project.quota), usage_of(session, project)
    if quota.queued_runs is not None and usage.queued_runs + len(runs) > quota.queued_runs:
        raise _exceeded(
            project, f"{quota.queued_runs} queued runs", f"{usage.queued_runs} are queued, {len(runs)} are requested"
        )
    disk = usage.disk_mb
    for run in runs:
        limits = run.limits
        check_sandbox(project, run.sandbox, installed)
        if run.network not in quota.networks:
            raise _exceeded(project, _only("network", quota.networks), f"{run.network} was requested")
        for name in ("cpus", "memory_mb", "gpus"):
            most = getattr(quota, name)
            if most is not None and getattr(limits, name) > most:
                raise _exceeded(project, f"{plain(most)} {name}", f"the run requests {plain(getattr(limits, name))}")
        if quota.max_time_limit is not None and limits.time_limit > quota.max_time_limit:
            raise _exceeded(
                project, f"{plain(quota.max_time_limit)} s per run", f"the run requests {plain(limits.time_limit)}"
            )
        disk += limits.disk_mb
    _check_disk(project, quota, disk)
    if quota.llm_tokens is None:
        return runs
    return _with_tokens(project, quota.llm_tokens, usage.llm_tokens, runs)


def check_sandbox(project: Project, sandbox: str, installed: Mapping[str, Capabilities]) -> None:
    """Raise a `Problem` if a project's quota does not allow a sandbox."""
    quota = Quota.model_validate(project.quota)
    if not allows(quota, sandbox, installed):
        raise _exceeded(project, _only_sandboxes(quota), f"{sandbox} was requested")


def check_disk(session: Session, project: Project, more_mb: int) -> None:
    """Raise a `Problem` if a project's quota does not allow that many more megabytes on disk."""
    _check_disk(project, Quota.model_validate(project.quota), usage_of(session, project).disk_mb + more_mb)


def _check_disk(project: Project, quota: Quota, used: int) -> None:
    if quota.disk_mb is not None and used > quota.disk_mb:
        raise _exceeded(project, f"{quota.disk_mb} MB of disk", f"with this request, it would use {used}")


def check_waiting(session: Session, project: Project, kind: str) -> None:
    """Check that another build or grading job may be queued in a project.

    Raises:
        Problem: Too many are queued already.
    """
    most, what = _MOST_WAITING[kind]
    unfinished = (Job.project_id == project.id, Job.kind == kind, Job.state != "ended")
    if (session.scalar(select(func.count()).where(*unfinished)) or 0) >= most:
        hint = "Wait for some of them to finish."
        raise Problem("quota-exceeded", f"Project {project.name} already has {most} {what} queued.", hint=hint)


def _with_tokens(project: Project, most: int, used: int, runs: Sequence[RunPlan]) -> list[RunPlan]:
    """Return runs with limits on LLM tokens whose sum does not exceed the rest of the quota."""
    metered = [run for run in runs if run.network == "gateway"]
    open_ended = sum(run.limits.llm_tokens is None for run in metered)
    left = most - used
    free = left - sum(run.limits.llm_tokens or 0 for run in metered)
    if metered and free < open_ended:
        raise _exceeded(project, f"{most} LLM tokens", f"{max(left, 0)} are left")
    shares = iter(free // open_ended + (number < free % open_ended) for number in range(open_ended))
    return [
        run.model_copy(update={"limits": run.limits.model_copy(update={"llm_tokens": next(shares)})})
        if run.network == "gateway" and run.limits.llm_tokens is None
        else run
        for run in runs
    ]


def _only_sandboxes(quota: Quota) -> str:
    """Describe where a quota allows agents to run."""
    names = quota.sandboxes or ()
    ids = [name for name in names if name != ISOLATED]
    if ISOLATED not in names:
        return _only("sandbox", ids)
    return f"only isolated sandboxes{f' or {_or(ids)}' if ids else ''}"


def _or(names: Sequence[str]) -> str:
    return " or ".join(names)


def _only(kind: str, names: Sequence[str]) -> str:
    return f"only {kind} {_or(names)}" if names else f"no {kind}"


def _exceeded(project: Project, most: str, state: str) -> Problem:
    hint = "Request less, delete runs that are no longer needed, or ask the server administrator for more."
    return Problem("quota-exceeded", f"The quota of project {project.name} allows {most}; {state}.", hint=hint)
