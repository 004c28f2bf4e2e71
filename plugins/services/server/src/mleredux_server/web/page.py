"""The page about the server: its queue, machine, quotas, and for admins its users, tokens and audit log."""

from __future__ import annotations

from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from mleredux.plugin.artifact import Run
from mleredux_http_api import TokenView
from mleredux_view.shared import Visit
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from mleredux_server.accounts.accounts import live_tokens
from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import Identity, Job, Project, RunRow, Token, User
from mleredux_server.operations.audit import Changes, changes
from mleredux_server.operations.health import Check, Health
from mleredux_server.runs.lists import visible_to
from mleredux_server.runs.views import as_view, project_view, run_view, waiting_for
from mleredux_server.schemas.accounts import ProjectView
from mleredux_server.web.source import ServerSource

_SHOWN = 200
_LIMITS = {
    "concurrent_runs": "concurrent runs", "queued_runs": "queued runs", "cpus": "CPUs", "memory_mb": "memory (MB)",
    "gpus": "GPUs", "disk_mb": "disk (MB)", "llm_tokens": "LLM tokens",
}  # fmt: skip
_USED = {"concurrent_runs": "running_runs"}


class Share(NamedTuple):
    """A project's limit and current usage of a resource."""

    name: str
    used: float | None
    most: float | None


def server(visit: Visit) -> dict[str, Any]:
    """Return everything that the visitor's token may see: lists of the API, as one page."""
    source = cast("ServerSource", visit.source)
    service, caller = source.service, source.caller
    caller.require("read")
    checks: list[Check] = Health(service).check_all()
    with service.database.reading() as session:
        sees_all, seen = caller.all_projects, visible_to(caller, Project.id)
        projects = session.scalars(select(Project).where(*seen).order_by(Project.name).limit(_SHOWN))
        views = [project_view(session, project, caller) for project in projects.all()]
        return {
            "checks": checks,
            "projects": [(view, _shares(view)) for view in views],
            **_queue(session, caller),
            "tokens": _tokens(session, caller),
            "provider": urlsplit(service.settings.oidc_issuer or "").netloc,
            "identities": session.scalars(select(Identity).where(Identity.user_id == caller.user_id)).all(),
            "users": session.scalars(select(User).order_by(User.name).limit(_SHOWN)).all() if sees_all else [],
            "audit": changes(session, Changes(), _SHOWN) if sees_all else [],
        }


def queued(visit: Visit, run: Run) -> dict[str, Any] | None:
    """Return the reason why a run waits; None if it does not."""
    service = cast("ServerSource", visit.source).service
    with service.database.reading() as session:
        row = session.get(RunRow, run.id)
        why = waiting_for(row, session.get(Job, run.id), service.failure) if row is not None else None
    return {"why": why, "status": row.status} if row is not None and why else None


def _queue(session: Session, caller: Caller) -> dict[str, Any]:
    """Return running and queued runs, the next ones first, with the API's reason why each one waits."""
    where = [Job.kind == "run", Job.state.in_(("queued", "started")), *visible_to(caller, Job.project_id)]
    query = select(RunRow, User.name, Job).join(Job, Job.id == RunRow.id).join(User, User.id == RunRow.user_id)
    order = (Job.state.desc(), Job.priority.desc(), Job.queued_at, Job.id)
    rows = session.execute(query.where(*where).order_by(*order).limit(_SHOWN)).all()
    total = session.scalar(select(func.count()).select_from(Job).where(*where)) or 0
    return {"queue": [run_view(row, name, job) for row, name, job in rows], "queued": total}


def _shares(view: ProjectView) -> list[Share]:
    quota, usage = view.quota, view.usage
    return [
        Share(title, _rounded(getattr(usage, _USED.get(name, name)) or 0), _rounded(getattr(quota, name)))
        for name, title in _LIMITS.items()
    ]


def _rounded(value: float | None) -> float | None:
    """Return a number rounded to one decimal place, whole numbers as integers; None stays None."""
    return value if value is None else int(value) if value == int(value) else round(value, 1)


def _tokens(session: Session, caller: Caller) -> list[TokenView]:
    """Return the records of the user's own tokens, or of all tokens for an admin; the tokens themselves are not
    stored."""
    if not caller.all_projects and not caller.may("tokens"):
        return []
    rows = session.execute(live_tokens(caller).order_by(Token.created_at.desc()).limit(_SHOWN))
    return [as_view(TokenView, token, user=name) for token, name in rows]
