"""Create builds: agents' environments, built ahead of their runs."""

from __future__ import annotations

import json
from pathlib import Path

from mleredux.plugin.agent import Agent, Build
from mleredux.plugin.files import write_atomically
from mleredux.plugin.sandbox import choose
from mleredux_http_api import BuildView
from sqlalchemy.orm import Session

from mleredux_server.accounts.identity import new_id
from mleredux_server.accounts.secrets import providing
from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import BuildRow, Job, Project, now
from mleredux_server.protocol.idempotency import Answer, Claim
from mleredux_server.runs.admission import check_sandbox, check_waiting
from mleredux_server.runs.creation import make_job
from mleredux_server.runs.references import check_agent_reference, check_build
from mleredux_server.runs.sources import check_source
from mleredux_server.runs.views import as_view
from mleredux_server.schemas.builds import BuildAsked
from mleredux_server.service import Service
from mleredux_server.streams.tail import End

_FINAL = ("ready", "failed")
_CONTEXT = Build(context=Path())


def make_build(service: Service, caller: Caller, body: BuildAsked, claim: Claim) -> Answer:
    """Create a build of an agent's environment; return the response to its request.

    Raises:
        Problem: This caller or project may not build it.
        MlereduxError: There is no such agent or sandbox.
    """
    with providing(service, caller, body.secrets, body.project):
        sandbox = _check(service, caller, body)
    row = BuildRow(id=new_id("bld"), agent=body.agent, sandbox=sandbox, options=body.options)
    row.created_at, row.status = now(), "queued"
    request = {**body.model_dump(mode="json", exclude={"project"}), "sandbox": sandbox, "trusted": caller.all_projects}
    request["project_secrets"] = caller.bound_to is not None

    def check(session: Session, project: Project) -> None:
        check_sandbox(project, sandbox, service.catalogue.capabilities())
        check_waiting(session, project, "build")

    def fill(folder: Path) -> None:
        write_atomically(folder / "request.json", json.dumps(request))

    def answer(build: BuildRow) -> Answer:
        view = as_view(BuildView, build, user=caller.user_name)
        return Answer(202, {"Location": f"/v1/builds/{view.id}"}, view.model_dump_json())

    job = Job(kind="build")
    return answer(make_job(service, caller, row, job, body.project, check=check, fill=fill, answer=answer, claim=claim))


def build_is_over(service: Service, build_id: str) -> End | None:
    """Return whether the log of a build is complete."""
    with service.database.reading() as session:
        row = session.get(BuildRow, build_id)
    if row is None:
        return End(None)
    return End(row.status) if row.status in _FINAL else None


def _check(service: Service, caller: Caller, body: BuildAsked) -> str:
    """Return the sandbox to build for, after all checks that need no fetching."""
    catalogue, installed = service.catalogue, service.catalogue.capabilities()
    if body.sandbox is not None:
        catalogue.sandbox(body.sandbox)
    check_source(service, caller, body.agent)
    check_agent_reference(caller, body.agent, service.settings, known=catalogue.entries("agents"))
    if ":" in body.agent:
        # Fetched and checked by the worker; a repository's environment is built from a Dockerfile.
        unknown = Agent(id="repository", title="", command=(), build=_CONTEXT, isolated=True)
        return body.sandbox or choose(unknown, installed)
    agent = catalogue.agent(body.agent, body.options)
    if not caller.all_projects:
        check_build(catalogue, service.settings, body.agent, body.options)
    # Without isolation, there is nothing to build: the interpreter exists already.
    wanted = agent if body.sandbox else agent.model_copy(update={"isolated": True})
    return choose(wanted, installed, body.sandbox)
