"""Secrets of users and projects: write-only, and passed to runs by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from mleredux.plugin.agent import GIT_TOKEN
from mleredux.plugin.host import provide_secrets
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from mleredux_server.accounts.accounts import check_owner, note, visible_project
from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import Job, RunRow, Secret, now
from mleredux_server.protocol.problems import Problem, existing
from mleredux_server.runs.creation import project_for
from mleredux_server.service import Service

_LOG = structlog.get_logger()
MOST_SECRETS = 100
_RESERVED = re.compile(
    r"(MLEREDUX|LD|XDG|GIT)_.*|PYTHON.*|PATH|HOME|(.*_)?PROXY|(OPENAI|ANTHROPIC)_(BASE_URL|API_BASE)"
)
"""Names that affect how programs run, and so can't be names of secrets."""


def owner_of(session: Session, caller: Caller, project: str | None) -> str:
    """Return the id of the user or project that owns the secrets.

    Raises:
        Problem: The caller can see no such project, or their token is limited to a project.
    """
    if project is not None:
        return visible_project(session, caller, project).id
    if caller.bound_to is not None:
        raise Problem("forbidden", "The token is limited to a project's secrets.", hint="Specify the project.")
    return caller.user_id


def set_secret(service: Service, caller: Caller, name: str, value: str, project: str | None) -> Secret:
    """Create or replace a secret of the caller, or of a project that they own.

    Raises:
        Problem: The caller may not do this, the name is reserved, or there are too many secrets.
    """
    if _RESERVED.fullmatch(name) and name != GIT_TOKEN:
        raise Problem("invalid", f"{name} can't be the name of a secret.", hint="Choose another, like HF_TOKEN.")
    with service.database.writing() as session:
        owner = _owned(session, caller, project)
        secret = session.get(Secret, (owner, name))
        if secret is None:
            count = session.scalar(select(func.count()).where(Secret.owner == owner)) or 0
            if count >= MOST_SECRETS:
                raise Problem("conflict", f"There are {MOST_SECRETS} secrets already.", hint="Delete some.")
            secret = Secret(owner=owner, name=name, created_at=now())
            session.add(secret)
        secret.value = service.vault.lock(f"{owner}:{name}", value)
        secret.user_id, secret.updated_at = caller.user_id, now()
        note(session, caller, "secret.set", f"{owner} {name}")
    return secret


def delete_secret(service: Service, caller: Caller, name: str, project: str | None) -> None:
    """Delete a secret; runs that already have it keep it until they end.

    Raises:
        Problem: The secret does not exist, or the caller may not delete it.
    """
    with service.database.writing() as session:
        owner = _owned(session, caller, project)
        session.delete(existing(session.get(Secret, (owner, name)), "secret", name))
        note(session, caller, "secret.delete", f"{owner} {name}")


@contextmanager
def providing(
    service: Service, caller: Caller, names: Iterable[str], project: str | None, *, own: bool = True
) -> Iterator[None]:
    """Provide a caller's secrets to the code that this thread executes, for a run in a project.

    Args:
        service: The service.
        caller: The requesting user.
        names: Names of the secrets.
        project: Id or name of the run's project; None for the caller's own.
        own: Whether personal secrets may be used; never with a token that is limited to a project.

    Raises:
        Problem: One of them does not exist.
    """
    wanted, values = list(dict.fromkeys(names)), dict[str, str]()
    if wanted:
        with service.database.reading() as session:
            home = project_for(session, caller, project).id
            personal = caller.user_id if own and caller.bound_to is None else None
            values = _values(service, session, wanted, personal, home)
        if missing := [name for name in wanted if name not in values]:
            who, option = ("You and the project have", "") if personal else ("The project has", " --project P")
            hint = f"Set it with `mleredux account secret set {missing[0]}{option}`."
            raise Problem("not-found", f"{who} no secret {missing[0]}.", hint=hint)
    with provide_secrets(values):
        yield


def secrets_of(
    service: Service, row: RunRow | Job, session: Session | None = None, *, request: dict[str, Any] | None = None
) -> dict[str, str]:
    """Return the current values of the secrets that a job's `request` names, by name."""
    request = (row.request if isinstance(row, RunRow) else request) or {}
    names, personal = request.get("secrets") or [], None if request.get("project_secrets") else row.user_id
    if not names:
        return {}
    if session is None:
        with service.database.reading() as opened:
            return secrets_of(service, row, opened)
    try:
        return _values(service, session, names, personal, row.project_id)
    except Problem as problem:
        _LOG.error("secrets can't be granted", job=row.id, reason=problem.detail)
        return {}


def _values(
    service: Service, session: Session, names: list[str], user_id: str | None, project_id: str
) -> dict[str, str]:
    """Return values by name; a user's own secret takes precedence over the project's."""
    query = select(Secret).where(Secret.owner.in_([user_id or "", project_id]), Secret.name.in_(names))
    values: dict[str, str] = {}
    for secret in sorted(session.scalars(query), key=lambda secret: secret.owner == user_id):
        values[secret.name] = service.vault.open(f"{secret.owner}:{secret.name}", secret.value)
    return values


def _owned(session: Session, caller: Caller, project: str | None) -> str:
    owner = owner_of(session, caller, project)
    if project is not None:
        check_owner(caller, owner, "a project's secrets")
    return owner
