"""What a project's quota allows, asked when something is made; what must wait is the scheduler's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mleredux.plugin.agent import Limits
from mleredux.plugin.sandbox import Capabilities
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from mleredux_server.database.tables import Job, Project
from mleredux_server.problems import Problem
from mleredux_server.schemas.accounts import ISOLATED, Quota, Usage
from mleredux_server.schemas.runs import HowToRun

_LEAST = {"memory_mb": 63}
"""No run is given less; where a quota has less, it is refused."""
_MOST_WAITING = {"build": (100, "builds"), "grade": (1000, "submissions")}
"""Jobs of one project that may be unfinished, and what they are called."""


def usage_of(session: Session, project: Project) -> Usage:
    """What a project uses now."""
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
    return Usage(
        running_runs=running[1],
        queued_runs=sum(row[1] for row in unfinished) - running[1],
        cpus=running[2],
        memory_mb=running[3],
        gpus=running[4],
        disk_mb=disk,
        llm_tokens=project.llm_tokens_used + sum(int(row[5] or 0) for row in unfinished),
    )


def fit_to_quota(
    quota: Quota,
    fields: dict[str, Any],
    asked: HowToRun,
    sandboxes: Sequence[str],
    installed: Mapping[str, Capabilities],
) -> None:
    """Let what nobody asked for keep to a quota: an agent's own limits, and where it runs.

    Args:
        quota: Of the project.
        fields: Of the run, as the agent would have them; changed in place.
        asked: What was asked for; that is not changed.
        sandboxes: Where else the agent runs, best first.
        installed: What each sandbox can do.
    """
    limits: Limits = fields["limits"]
    most = {"cpus": quota.cpus, "memory_mb": quota.memory_mb, "time_limit": quota.max_time_limit}
    named = asked.limits.model_fields_set
    smaller = {
        name: value
        for name, value in most.items()
        if value is not None and name not in named and _LEAST.get(name, 0) < value < getattr(limits, name)
    }
    if smaller:
        fields["limits"] = Limits.model_validate({**limits.model_dump(), **smaller})
    if asked.sandbox is None and not allows(quota, fields["sandbox"], installed):
        able = (name for name in sandboxes if allows(quota, name, installed))
        fields["sandbox"] = next(able, fields["sandbox"])


def allows(quota: Quota, sandbox: str, installed: Mapping[str, Capabilities]) -> bool:
    """Whether agents of a project with this quota may run in a sandbox."""
    if quota.sandboxes is None or sandbox in quota.sandboxes:
        return True
    return ISOLATED in quota.sandboxes and sandbox in installed and installed[sandbox].isolated


def check_quota(
    session: Session, project: Project, asked: Sequence[dict[str, Any]], installed: Mapping[str, Capabilities]
) -> None:
    """Whether runs with these fields may be made in a project.

    Where the project's LLM tokens are limited, what is left of them is shared among the runs that ask for no number of
    their own, so that all together can't use more.

    Raises:
        Problem: They may not, however long one waits.
    """
    quota, usage = Quota.model_validate(project.quota), usage_of(session, project)
    if quota.queued_runs is not None and usage.queued_runs + len(asked) > quota.queued_runs:
        raise _exceeded(
            project, f"{quota.queued_runs} queued runs", f"{usage.queued_runs} wait, {len(asked)} are asked"
        )
    disk = usage.disk_mb
    for fields in asked:
        limits: Limits = fields["limits"]
        if not allows(quota, fields["sandbox"], installed):
            raise _exceeded(project, only_sandboxes(quota), f"{fields['sandbox']} was asked for")
        if fields["network"] not in quota.networks:
            raise _exceeded(project, _only("network", quota.networks), f"{fields['network']} was asked for")
        for name in ("cpus", "memory_mb", "gpus"):
            most = getattr(quota, name)
            if most is not None and getattr(limits, name) > most:
                raise _exceeded(project, f"{most:g} {name}", f"the run asks for {getattr(limits, name):g}")
        if quota.max_time_limit is not None and limits.time_limit > quota.max_time_limit:
            raise _exceeded(project, f"{quota.max_time_limit:g} s a run", f"the run asks for {limits.time_limit:g}")
        disk += limits.disk_mb
    if quota.disk_mb is not None and disk > quota.disk_mb:
        raise _exceeded(project, f"{quota.disk_mb} MB of disk", f"with what is asked, it would have {disk}")
    if quota.llm_tokens is not None:
        _reserve_tokens(project, quota.llm_tokens, usage.llm_tokens, asked)


def check_waiting(session: Session, project: Project, kind: str) -> None:
    """Whether one more job that is no run may wait in a project.

    Raises:
        Problem: Too many wait already.
    """
    most, what = _MOST_WAITING[kind]
    unfinished = (Job.project_id == project.id, Job.kind == kind, Job.state != "ended")
    if (session.scalar(select(func.count()).where(*unfinished)) or 0) >= most:
        raise Problem(
            "quota-exceeded", f"{most} {what} of project {project.name} wait already.", hint="Wait for some of them."
        )


def _reserve_tokens(project: Project, most: int, used: int, asked: Sequence[dict[str, Any]]) -> None:
    """Set each run's limit of LLM tokens, so that their sum is not above what is left."""
    metered = [fields for fields in asked if fields["network"] == "gateway"]
    if not metered:
        return
    open_ended = [fields for fields in metered if fields["limits"].llm_tokens is None]
    left = most - used
    free = left - sum(fields["limits"].llm_tokens or 0 for fields in metered)
    if free < len(open_ended):
        raise _exceeded(project, f"{most} LLM tokens", f"{max(left, 0)} are left")
    for number, fields in enumerate(open_ended):
        share = free // len(open_ended) + (number < free % len(open_ended))
        fields["limits"] = fields["limits"].model_copy(update={"llm_tokens": share})


def only_sandboxes(quota: Quota) -> str:
    """Where a quota lets agents run, in words."""
    names = quota.sandboxes or ()
    ids = [name for name in names if name != ISOLATED]
    if ISOLATED not in names:
        return _only("sandbox", ids)
    return f"only isolated sandboxes{f' or {_or(ids)}' if ids else ''}"


def _or(names: Sequence[str]) -> str:
    return " or ".join(names)


def _only(kind: str, names: Sequence[str]) -> str:
    return f"only {kind} {_or(names)}" if names else f"no {kind}"


def _exceeded(project: Project, most: str, found: str) -> Problem:
    return Problem(
        "quota-exceeded",
        f"The quota of project {project.name} allows {most}; {found}.",
        hint="Ask for less, delete runs that are no longer needed, or ask who runs the server for more.",
    )
