"""Who asks, and what they may."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import select

from mleredux_server.database import Database
from mleredux_server.database.tables import Member, Token, User, now
from mleredux_server.identity import TOKEN_PREFIX, hash_of
from mleredux_server.problems import Problem

SCOPES = ("read", "run", "grade", "tokens", "admin")
_CACHED_SECONDS = 5.0
_MOST_CACHED = 10_000


@dataclass(frozen=True)
class Caller:
    """Who asks.

    Attributes:
        scopes: Of the token; `admin` implies all.
        projects: Ids of the projects whose runs they see, each with their role there.
        all_projects: Whether they see everything.
    """

    user_id: str
    user_name: str
    admin: bool
    token_id: str
    token_name: str
    scopes: frozenset[str]
    projects: dict[str, str]

    @property
    def all_projects(self) -> bool:
        """Whether they see everything."""
        return self.admin and "admin" in self.scopes

    def may(self, scope: str) -> bool:
        """Whether the token has a scope."""
        return scope in self.scopes or self.all_projects

    def sees(self, project_id: str) -> bool:
        """Whether a project's things are theirs to see."""
        return self.all_projects or project_id in self.projects


class Tokens:
    """Looks tokens up; what was found is remembered for some seconds, so that not each request asks the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, tuple[float, Caller]] = {}

    def forget(self) -> None:
        """After tokens, users or members changed."""
        self._known.clear()

    def caller(self, token: str) -> Caller | None:
        """Whose token that is, where it is good."""
        hashed = hash_of(token)
        known = self._known.get(hashed)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        found = self._look_up(hashed)
        if found is None:
            self._known.pop(hashed, None)
            return None
        if len(self._known) >= _MOST_CACHED:
            self._known.clear()
        self._known[hashed] = (time.monotonic() + _CACHED_SECONDS, found)
        return found

    def remembered(self, token: str) -> Caller | None:
        """As `caller`, where the database need not be asked."""
        known = self._known.get(hash_of(token))
        return known[1] if known is not None and known[0] > time.monotonic() else None

    def _look_up(self, hashed: str) -> Caller | None:
        with self._database.reading() as session:
            row = session.execute(select(Token, User).join(User, User.id == Token.user_id).where(Token.hash == hashed))
            token, user = row.tuples().one_or_none() or (None, None)
            if token is None or user is None or token.revoked_at is not None or user.disabled_at is not None:
                return None
            if token.expires_at is not None and token.expires_at <= now():
                return None
            members = session.execute(select(Member.project_id, Member.role).where(Member.user_id == user.id)).tuples()
            projects = {project: role for project, role in members if token.project_id in (None, project)}
        if token.last_used_at is None or now() - token.last_used_at > timedelta(minutes=5):
            with self._database.writing() as session:
                session.get_one(Token, token.id).last_used_at = now()
        return Caller(
            user_id=user.id,
            user_name=user.name,
            admin=user.admin and token.project_id is None,
            token_id=token.id,
            token_name=token.name,
            scopes=frozenset(token.scopes),
            projects=projects,
        )


async def authenticate(request: Request) -> Caller:
    """The caller of a request.

    Raises:
        Problem: There is no token, or it is not good.
    """
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    token = token.strip()
    challenge = {"WWW-Authenticate": 'Bearer realm="mleredux"'}
    if scheme.lower() != "bearer" or not token:
        raise Problem(
            "unauthenticated", "No token was sent.", hint="Send `Authorization: Bearer mlr_…`.", headers=challenge
        )
    caller = None
    if token.startswith(TOKEN_PREFIX) and len(token) <= 128:
        tokens: Tokens = request.app.state.tokens
        caller = tokens.remembered(token) or await run_in_threadpool(tokens.caller, token)
    if caller is None:
        raise Problem(
            "unauthenticated",
            "The token is not known, or no longer good.",
            hint="Ask for a new one.",
            headers={"WWW-Authenticate": 'Bearer realm="mleredux", error="invalid_token"'},
        )
    request.state.caller = caller
    return caller


def needs(scope: str) -> Callable[[Request], Coroutine[Any, Any, Caller]]:
    """A dependency: the caller, whose token has that scope."""

    async def check(request: Request) -> Caller:
        caller = await authenticate(request)
        if not caller.may(scope):
            raise Problem("forbidden", f"The token lacks the scope {scope}.", hint="Use one that has it.")
        return caller

    return check
