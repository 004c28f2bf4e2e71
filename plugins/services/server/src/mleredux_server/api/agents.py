"""`/v1/agents`, `/v1/techniques`, `/v1/graders`, `/v1/sandboxes`: the installed plugins other than tasks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from mleredux.plugin.agent import Agent
from mleredux.plugin.host import agent_record, list_records
from mleredux.plugin.sandbox import fitting, needs_of
from mleredux_http_api import AgentView, GraderView, SandboxView, TechniqueView

from mleredux_server.accounts.security import Reader
from mleredux_server.protocol.problems import Problem
from mleredux_server.schemas.pages import Page, Pages, Paging
from mleredux_server.schemas.tasks import AgentDetail
from mleredux_server.service import Current, service_of

router = APIRouter(prefix="/v1", tags=["agents"])

_View = TypeVar("_View", AgentView, TechniqueView, GraderView, SandboxView)
_SYSTEM = ("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/")


@router.get("/agents")
def list_agents(_caller: Reader, request: Request, paging: Pages) -> Page[AgentView]:
    """List installed agents, in order of their ids."""
    return _page(request, "agents", paging, AgentView)


@router.get("/agents/{agent_id}")
def get_agent(agent_id: str, _caller: Reader, service: Current) -> AgentDetail:
    """Get an agent: its command, options, limits and environment."""
    catalogue = service.catalogue
    if ":" in agent_id:  # looking up an unknown id could fetch an agent
        hint = "A build (`POST /v1/builds`) fetches other agents and reports the result."
        raise Problem("not-found", "Only agents that are installed on the server are shown here.", hint=hint)
    entry = catalogue.entries("agents").get(agent_id)
    agent = catalogue.agent(agent_id)
    able = fitting(needs_of(agent), catalogue.capabilities())
    return AgentDetail(**shown_agent(agent), sandboxes=able, plugin=entry.plugin.name if entry is not None else None)


@router.get("/techniques")
def list_techniques(_caller: Reader, request: Request, paging: Pages) -> Page[TechniqueView]:
    """List installed techniques, in order of their ids; `GET /v1/tasks?technique=` lists the tasks that one creates."""
    return _page(request, "techniques", paging, TechniqueView)


@router.get("/graders")
def list_graders(_caller: Reader, request: Request, paging: Pages) -> Page[GraderView]:
    """List installed graders, in order of their ids."""
    return _page(request, "graders", paging, GraderView)


@router.get("/sandboxes")
def list_sandboxes(_caller: Reader, request: Request, paging: Pages) -> Page[SandboxView]:
    """List installed sandboxes, in order of their ids."""
    return _page(request, "sandboxes", paging, SandboxView)


def shown_agent(agent: Agent) -> dict[str, Any]:
    """Return an agent's record without variables and without paths on this machine."""
    record = {name: value for name, value in agent_record(agent).items() if name not in ("env", "pass_env", "secrets")}
    record["build"]["context"] = None
    shown: dict[str, Any] = _without_paths(record)
    return shown


def _without_paths(value: Any) -> Any:
    """Shorten file paths on this machine to their last part; system paths are the same everywhere."""
    if isinstance(value, dict):
        return {key: _without_paths(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_paths(part) for part in value]
    if isinstance(value, str) and value.startswith("/") and len(value) < 4096 and not value.startswith(_SYSTEM):
        return Path(value).name if "\0" not in value and os.path.lexists(value) else value
    return value


def _page(request: Request, kind: str, paging: Paging, view: type[_View]) -> Page[_View]:
    rows = list_records(service_of(request).catalogue, kind)
    return paging.page_of_all(rows, lambda row: str(row["id"]), lambda row: view(**row))
