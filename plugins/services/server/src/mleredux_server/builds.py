"""Making builds: an agent's environment ahead of its runs."""

from __future__ import annotations

import json
from pathlib import Path

from mleredux.errors import MlereduxError
from mleredux.plugin.files import write_atomically
from sqlalchemy.orm import Session

from mleredux_server.admission import check_waiting
from mleredux_server.creation import make_job
from mleredux_server.database.tables import BuildRow, Job, Project, now
from mleredux_server.idempotency import Answer, Claim
from mleredux_server.identity import new_id
from mleredux_server.problems import Problem
from mleredux_server.references import check_agent_reference, check_made
from mleredux_server.schemas.accounts import Quota
from mleredux_server.schemas.builds import BuildAsked, BuildView
from mleredux_server.security import Caller
from mleredux_server.service import Service
from mleredux_server.streams.tail import Over

_FINAL = ("ready", "failed")


def view_of(row: BuildRow, user: str) -> BuildView:
    """A build as it is shown."""
    fields = ("id", "agent", "sandbox", "status", "message", "image", "cached", "created_at", "ended_at")
    return BuildView(**{name: getattr(row, name) for name in fields}, project=row.project_id, user=user)


def answer_of(view: BuildView) -> Answer:
    """The answer to a request for a build."""
    return Answer(202, {"Location": f"/v1/builds/{view.id}"}, view.model_dump_json())


def make_build(service: Service, caller: Caller, asked: BuildAsked, claim: Claim | None) -> BuildView:
    """Let an agent's environment be built.

    Raises:
        Problem: It may not be, for this caller or project.
        MlereduxError: There is no such agent or sandbox.
    """
    _check(service, caller, asked)
    row = BuildRow(id=new_id("bld"), agent=asked.agent, sandbox=asked.sandbox, options=asked.options)
    row.created_at, row.status = now(), "queued"
    request = {**asked.model_dump(mode="json", exclude={"project"}), "trusted": caller.all_projects}

    def check(session: Session, project: Project) -> None:
        _check_quota(session, project, asked.sandbox)

    def fill(folder: Path) -> None:
        write_atomically(folder / "request.json", json.dumps(request))

    def answer(made: BuildRow) -> Answer:
        return answer_of(view_of(made, caller.user_name))

    job = Job(kind="build")
    make_job(service, caller, row, job, asked.project, check=check, fill=fill, answer=answer, claim=claim)
    return view_of(row, caller.user_name)


def build_is_over(service: Service, found: str) -> Over | None:
    """Whether nothing more will be written to the log of a build."""
    with service.database.reading() as session:
        row = session.get(BuildRow, found)
    if row is None:
        return Over(None)
    return Over(row.status) if row.status in _FINAL else None


def _check(service: Service, caller: Caller, asked: BuildAsked) -> None:
    """What can be said without fetching anything."""
    catalogue = service.catalogue
    catalogue.sandbox(asked.sandbox)
    check_agent_reference(caller, asked.agent, service.settings, known=catalogue.entries("agents"))
    if ":" in asked.agent:
        return
    agent = catalogue.agent(asked.agent, asked.options)
    if not caller.all_projects:
        check_made(catalogue, service.settings, asked.agent, asked.options)
    if asked.sandbox not in agent.sandboxes:
        raise MlereduxError(
            f"Agent {agent.id} runs only in {', '.join(agent.sandboxes)}, not in {asked.sandbox}.",
            hint="Name one of them as `sandbox`.",
        )


def _check_quota(session: Session, project: Project, sandbox: str) -> None:
    quota = Quota.model_validate(project.quota)
    if quota.sandboxes is not None and sandbox not in quota.sandboxes:
        raise Problem(
            "quota-exceeded",
            f"The quota of project {project.name} allows only sandbox {' or '.join(quota.sandboxes)}, not {sandbox}.",
            hint="Ask who runs the server.",
        )
    check_waiting(session, project, "build")
