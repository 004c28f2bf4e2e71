"""What a project's quota allows, asked when something is made; what must wait is the scheduler's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mleredux.models import Limits
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from mleredux_server.database.tables import Job, Project
from mleredux_server.problems import Problem
from mleredux_server.schemas.accounts import Quota, Usage


def usage_of(session: Session, project: Project) -> Usage:
    """What a project uses now."""
    mine = (Job.project_id == project.id, Job.kind == "run")
    running = session.execute(
        select(func.count(), func.sum(Job.cpus), func.sum(Job.memory_mb), func.sum(Job.gpus)).where(
            *mine, Job.state == "started"
        )
    ).one()
    waiting = session.scalar(select(func.count()).where(*mine, Job.state.in_(("creating", "queued")))) or 0
    disk = session.scalar(select(func.sum(Job.disk_mb)).where(Job.project_id == project.id)) or 0
    reserved = session.scalar(select(func.sum(Job.llm_tokens)).where(*mine, Job.state != "ended")) or 0
    return Usage(
        running_runs=running[0],
        queued_runs=waiting,
        cpus=running[1] or 0,
        memory_mb=running[2] or 0,
        gpus=running[3] or 0,
        disk_mb=disk,
        llm_tokens=project.llm_tokens_used + reserved,
    )


def check_quota(session: Session, project: Project, asked: Sequence[dict[str, Any]]) -> None:
    """Whether runs with these fields may be made in a project; limits of LLM tokens are set to what is left.

    Raises:
        Problem: They may not, however long one waits.
    """
    quota, usage = Quota.model_validate(project.quota), usage_of(session, project)
    disk, tokens = usage.disk_mb, usage.llm_tokens
    if quota.queued_runs is not None and usage.queued_runs + len(asked) > quota.queued_runs:
        raise _exceeded(project, f"{quota.queued_runs} queued runs", f"{usage.queued_runs} wait")
    for fields in asked:
        limits: Limits = fields["limits"]
        if quota.sandboxes is not None and fields["sandbox"] not in quota.sandboxes:
            raise _exceeded(project, f"the sandboxes {', '.join(quota.sandboxes) or 'none'}", fields["sandbox"])
        if fields["network"] not in quota.networks:
            raise _exceeded(project, f"the networks {', '.join(quota.networks)}", fields["network"])
        for name in ("cpus", "memory_mb", "gpus"):
            most = getattr(quota, name)
            if most is not None and getattr(limits, name) > most:
                raise _exceeded(project, f"{most:g} {name}", f"the run asks for {getattr(limits, name):g}")
        if quota.max_time_limit is not None and limits.time_limit > quota.max_time_limit:
            raise _exceeded(project, f"{quota.max_time_limit:g} s a run", f"the run asks for {limits.time_limit:g}")
        disk += limits.disk_mb
        if quota.disk_mb is not None and disk > quota.disk_mb:
            raise _exceeded(project, f"{quota.disk_mb} MB of disk", f"with what is asked, it would have {disk}")
        if quota.llm_tokens is not None and fields["network"] == "gateway":
            left = quota.llm_tokens - tokens
            if left <= 0 or (limits.llm_tokens or 0) > left:
                raise _exceeded(project, f"{quota.llm_tokens} LLM tokens", f"{max(left, 0)} are left")
            fields["limits"] = limits.model_copy(update={"llm_tokens": limits.llm_tokens or left})
            tokens += fields["limits"].llm_tokens


def _exceeded(project: Project, most: str, found: str) -> Problem:
    return Problem(
        "quota-exceeded",
        f"The quota of project {project.name} allows {most}; {found}.",
        hint="Ask for less, delete runs that are no longer needed, or ask who runs the server for more.",
    )
