"""Authentication and authorization."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import select, update
from sqlalchemy.exc import SQLAlchemyError

from mleredux_server.accounts.identity import TOKEN_PREFIX, hash_of
from mleredux_server.accounts.limits import Limits
from mleredux_server.database import Database
from mleredux_server.database.tables import Member, Token, User, now
from mleredux_server.protocol.problems import Problem

_CACHED_SECONDS = 5.0
_MOST_CACHED = 10_000
_USE_NOTED = timedelta(minutes=5)
"""Precision of `last_used_at`."""


@dataclass(frozen=True)
class Caller:
    """The authenticated user of a request.

    Attributes:
        scopes: The token's scopes; `admin` implies all.
        projects: The caller's role by id of the projects whose runs they can see.
        bound_to: The only project that the token is valid for, if limited to one.
        expires_at: When the token expires.
    """

    user_id: str
    user_name: str
    admin: bool
    token_id: str
    scopes: frozenset[str]
    projects: dict[str, str]
    bound_to: str | None = None
    expires_at: datetime | None = None

    @property
    def all_projects(self) -> bool:
        """Whether the caller can see all projects."""
        return self.admin and "admin" in self.scopes

    def may(self, scope: str) -> bool:
        """Return whether the token has a scope."""
        return scope in self.scopes or self.all_projects

    def require(self, scope: str) -> None:
        """Check that the token has a scope.

        Raises:
            Problem: The token does not have the scope.
        """
        if not self.may(scope):
            raise Problem("forbidden", f"The token lacks the scope {scope}.", hint="Use a token that has this scope.")

    def sees(self, project_id: str) -> bool:
        """Return whether the caller may see a project's resources."""
        return self.all_projects or project_id in self.projects


class Tokens:
    """Looks up tokens and caches the results for a few seconds, so that not every request queries the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, tuple[float, Caller]] = {}
        self._valid: set[str] = set()
        self._noting: set[str] = set()
        self._notes = ThreadPoolExecutor(1, "token-use")
        self._changes = 0

    def forget(self) -> None:
        """Clear the cache after a change of tokens, users or members."""
        self._changes += 1
        self._known.clear()

    def caller(self, token: str) -> Caller | None:
        """Return the owner of a token, if it is valid."""
        return self.by_hash(hash_of(token))

    def by_hash(self, hashed: str) -> Caller | None:
        """Return the owner of a token, if it is valid, by the token's hash."""
        changes = self._changes
        if (known := self._remembered(hashed)) is not None:
            return known
        caller = self._find(hashed)
        if caller is None:
            self._known.pop(hashed, None)
            self._valid.discard(hashed)
            return None
        for kept in (self._known, self._valid):
            if len(kept) >= _MOST_CACHED:
                kept.clear()
        self._valid.add(hashed)
        if changes == self._changes:  # otherwise the result may already be outdated
            self._known[hashed] = (time.monotonic() + _CACHED_SECONDS, caller)
        return caller

    def remembered(self, token: str) -> Caller | None:
        """Return the cached result of `caller`, if any, without querying the database."""
        return self._remembered(hash_of(token))

    def _remembered(self, hashed: str) -> Caller | None:
        until, caller = self._known.get(hashed, (0.0, None))
        if caller is None or until <= time.monotonic() or _ended(caller.expires_at):
            return None
        return caller

    def was_valid(self, token: str) -> bool:
        """Return whether the token was used before, so that it is not a guess."""
        return hash_of(token) in self._valid

    def _find(self, hashed: str) -> Caller | None:
        with self._database.reading() as session:
            query = select(Token, User).join(User, User.id == Token.user_id).where(Token.hash == hashed)
            token, user = session.execute(query).one_or_none() or (None, None)
            if token is None or user is None or token.revoked_at is not None or user.disabled_at is not None:
                return None
            if _ended(token.expires_at):
                return None
            members = session.execute(select(Member.project_id, Member.role).where(Member.user_id == user.id)).all()
            projects = {project: role for project, role in members if token.project_id in (None, project)}
        self._note_use(token)
        admin = user.admin and token.project_id is None
        return Caller(
            user_id=user.id,
            user_name=user.name,
            admin=admin,
            token_id=token.id,
            scopes=frozenset(token.scopes) - (frozenset() if admin else {"admin"}),
            projects=projects,
            bound_to=token.project_id,
            expires_at=token.expires_at,
        )

    def _note_use(self, token: Token) -> None:
        """Record the use in the background: a database with other writers must not delay readers."""
        recent = token.last_used_at is not None and now() - token.last_used_at < _USE_NOTED
        if recent or token.id in self._noting:
            return
        self._noting.add(token.id)
        self._notes.submit(self._write_use, token.id)

    def _write_use(self, token_id: str) -> None:
        try:
            # Lost updates are recorded with a later use.
            with suppress(SQLAlchemyError), self._database.writing() as session:
                session.execute(update(Token).where(Token.id == token_id).values(last_used_at=now()))
        finally:
            self._noting.discard(token_id)


def _ended(expires_at: datetime | None) -> bool:
    return expires_at is not None and expires_at <= now()


def bearer_of(request: Request) -> str:
    """Return the token of a request; empty if there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


async def authenticate(request: Request) -> Caller:
    """Return the caller of a request.

    Raises:
        Problem: The token is missing, invalid, or used too often.
    """
    known: Caller | None = getattr(request.state, "caller", None)
    if known is not None:
        return known
    return await caller_of(request, bearer_of(request))


async def caller_of(request: Request, token: str) -> Caller:
    """Return the owner of a token that a request contains.

    Raises:
        Problem: The token is missing, invalid, or used too often.
    """
    limits: Limits = request.app.state.limits
    if not token:
        limits.count_failure(request)
        raise _unauthenticated("No token was sent.", "Send `Authorization: Bearer mlr_…`.")
    caller = None
    if token.startswith(TOKEN_PREFIX) and len(token) <= 128 and token.isascii():
        tokens: Tokens = request.app.state.tokens
        caller = tokens.remembered(token)
        if caller is None:
            if not tokens.was_valid(token):
                limits.check_guess(request)
            caller = await run_in_threadpool(tokens.caller, token)
    if caller is None:
        limits.count_failure(request)
        raise _unauthenticated("Invalid or expired token.", "Request a new one.", ', error="invalid_token"')
    request.state.caller = caller
    limits.count_request(request, caller.user_id)
    return caller


def _unauthenticated(detail: str, hint: str, error: str = "") -> Problem:
    headers = {"WWW-Authenticate": f'Bearer realm="mleredux"{error}'}
    return Problem("unauthenticated", detail, hint=hint, headers=headers)


def needs(scope: str) -> Callable[[Request], Coroutine[Any, Any, Caller]]:
    """Return a dependency that provides the caller, and requires that the token has the scope."""

    async def check(request: Request) -> Caller:
        caller = await authenticate(request)
        caller.require(scope)
        return caller

    return check


AnyCaller = Annotated[Caller, Depends(authenticate)]
Reader = Annotated[Caller, Depends(needs("read"))]
Runner = Annotated[Caller, Depends(needs("run"))]
Grader = Annotated[Caller, Depends(needs("grade"))]
Keeper = Annotated[Caller, Depends(needs("tokens"))]
Admin = Annotated[Caller, Depends(needs("admin"))]
