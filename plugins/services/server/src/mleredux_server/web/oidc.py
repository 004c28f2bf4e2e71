"""Sign in with an OpenID provider: the authorization code flow with PKCE and a nonce, using Authlib.

People are identified by the provider's `iss` and `sub`, never by a name or an e-mail address, both of which they may
change. The first sign-in creates a user, if a rule matches; a number is added to a name that is already in use. Each
sign-in creates a separate token, so that disabling the user, revoking the token and rate limits work as usual. A user
who signed in with a token can link their account at the provider to their existing user.
"""

from __future__ import annotations

import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from datetime import timedelta
from fnmatch import fnmatchcase
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import structlog
from fastapi import Request
from mleredux.errors import MlereduxError, one_line
from pydantic import TypeAdapter
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, Response

from mleredux_server.accounts.accounts import find_user, link_identity, make_token, make_user, note
from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import Identity, Token, User, now
from mleredux_server.protocol.problems import Problem
from mleredux_server.schemas.accounts import AccountName
from mleredux_server.service import Service
from mleredux_server.settings import Settings
from mleredux_server.web.sessions import SECONDS

CALLBACK = "/oidc/callback"
_COOKIE = "mleredux-oidc"
_WAIT = 600.0
_MOST = 10_000
_SCOPES = ("read", "run", "grade", "tokens")
_LOG = structlog.get_logger()


class Provider:
    """An OpenID provider with which people may sign in.

    Args:
        settings: The settings, with the issuer, the client and the rules.
        root: The path under which the pages are mounted.

    Raises:
        MlereduxError: The settings are not complete, or Authlib is not installed.
    """

    def __init__(self, settings: Settings, root: str) -> None:
        if not (settings.oidc_client and settings.oidc_secret and settings.oidc_allow):
            raise MlereduxError(
                "Signing in through an OpenID provider requires a client, its secret and a list of allowed users.",
                hint="Set --oidc-client, MLEREDUX_OIDC_SECRET and --oidc-allow.",
            )
        try:
            from authlib.integrations.starlette_client import OAuth
        except ImportError as error:
            raise MlereduxError("Authlib is not installed.", hint="`pip install 'mleredux-server[oidc]'`.") from error
        issuer = str(settings.oidc_issuer).rstrip("/")
        self.name = urlsplit(issuer).netloc
        self._rules, self._root = settings.oidc_allow, root
        self._client = OAuth().register(
            "oidc",
            client_id=settings.oidc_client,
            client_secret=settings.oidc_secret,
            server_metadata_url=f"{issuer}/.well-known/openid-configuration",
            client_kwargs={"scope": settings.oidc_scope, "code_challenge_method": "S256", "timeout": 20},
        )
        self._begun: OrderedDict[str, tuple[float, dict[str, Any], Caller | None]] = OrderedDict()

    async def begin(self, request: Request, caller: Caller | None = None) -> Response:
        """Redirect a browser to the provider, to sign in or to link an account there to the signed-in user.

        Raises:
            Problem: The provider can't be reached, or the user's token has fewer rights than signing in gives.
        """
        if caller is not None:
            check_may_link(caller)
        kept: dict[str, Any] = {}
        request.scope["session"] = kept
        back = str(request.url.replace(path=self._root + CALLBACK, query="", fragment=""))
        try:
            answer: Response = await self._client.authorize_redirect(request, back)
        except Exception as error:  # a network error, or a response without metadata
            raise self._failed(error) from error
        cookie = secrets.token_urlsafe(32)
        self._begun[cookie] = time.monotonic() + _WAIT, kept, caller
        while len(self._begun) > _MOST:
            self._begun.popitem(last=False)
        # Lax, since the redirect back comes from another site.
        secure, path = request.url.scheme == "https", self._root + CALLBACK
        answer.set_cookie(_COOKIE, cookie, max_age=int(_WAIT), httponly=True, samesite="lax", path=path, secure=secure)
        return answer

    async def finish(self, request: Request, service: Service) -> str | None:
        """Return a new token for the person who returns from the provider; None if they linked their account to their
        user.

        Raises:
            Problem: The sign-in did not begin here, the provider refuses, no rule allows the account, the user is
                disabled, or the account is another user's.
        """
        until, kept, caller = self._begun.pop(request.cookies.get(_COOKIE, ""), (0.0, {}, None))
        if until < time.monotonic():
            raise Problem("unauthenticated", "This sign-in has expired, or was started in another browser.")
        request.scope["session"] = kept
        try:
            answer = await self._client.authorize_access_token(request)
        except Exception as error:  # a refusal, a forged response, or a network error
            raise self._failed(error) from error
        if caller is not None:
            return await run_in_threadpool(link, service, caller, answer["userinfo"], self._rules)
        return await run_in_threadpool(token_of, service, answer["userinfo"], self._rules)

    def _failed(self, error: Exception) -> Problem:
        _LOG.warning("oidc.failed", provider=self.name, error=one_line(error)[:300])
        return Problem("unauthenticated", f"Signing in through {self.name} failed; the server's log has the reason.")


def token_of(service: Service, claims: Mapping[str, Any], rules: tuple[str, ...]) -> str:
    """Return a new token for a person; a user is created for them if a rule allows it.

    Args:
        service: The service.
        claims: Claims of a verified ID token.
        rules: Each `CLAIM=PATTERN` or `*`.

    Raises:
        Problem: No rule allows them, or their user is disabled.
    """
    issuer, subject = _account(claims, rules)
    with service.database.writing() as session:
        known = session.get(Identity, (issuer, subject))
        user = session.get(User, known.user_id) if known else None
        if user is None:
            user = make_user(session, _free_name(session, claims))
            link_identity(session, user, issuer, subject)
            note(session, None, "user.create", user.id)
        if user.disabled_at is not None:
            raise Problem("forbidden", f"User {user.name} is disabled.", hint="Ask an admin of this server.")
        scopes = ["admin"] if user.admin else [*_SCOPES]
        until = now() + timedelta(seconds=SECONDS)
        name = f"sign-in through {urlsplit(issuer).netloc}"
        token, secret = make_token(session, user, name, scopes, expires_at=until)
        note(session, None, "token.create", token.id)
    return secret


def check_may_link(caller: Caller) -> None:
    """Check that a token has the rights that signing in through a provider would give its user.

    Raises:
        Problem: The token has fewer rights: linking an account must not give its holder more rights.
    """
    full = caller.all_projects if caller.admin else all(caller.may(scope) for scope in _SCOPES)
    if not full or caller.bound_to is not None:
        hint = "Sign in with a token that has these scopes and is valid for all projects."
        needed = "admin" if caller.admin else ", ".join(_SCOPES)
        raise Problem("forbidden", f"Linking an account needs a token with the scopes {needed}.", hint=hint)


def link(service: Service, caller: Caller, claims: Mapping[str, Any], rules: tuple[str, ...]) -> None:
    """Link a person's account to a user; signing in with it then signs in as that user.

    Args:
        service: The service.
        caller: The user who began to link the account.
        claims: Claims of a verified ID token.
        rules: As for `token_of`.

    Raises:
        Problem: No rule allows the account, it is another user's, or the token was revoked in the meantime.
    """
    issuer, subject = _account(claims, rules)
    with service.database.writing() as session:
        user, token = session.get_one(User, caller.user_id), session.get(Token, caller.token_id)
        if token is None or token.revoked_at is not None or user.disabled_at is not None:
            raise Problem("unauthenticated", "Sign in again.")
        known = session.get(Identity, (issuer, subject))
        if known is not None and known.user_id != user.id:
            hint = "An admin can move it with `mleredux server user link`."
            raise Problem("conflict", "This account is linked to another user.", hint=hint)
        if known is None:
            link_identity(session, user, issuer, subject)
            note(session, caller, "user.link", user.id)


def _account(claims: Mapping[str, Any], rules: tuple[str, ...]) -> tuple[str, str]:
    """Return issuer and subject of an account that may sign in.

    Raises:
        Problem: No rule allows it.
    """
    issuer, subject = str(claims["iss"]), str(claims["sub"])
    if not any(allowed(rule, claims) for rule in rules):
        _LOG.warning("oidc.refused", issuer=issuer, subject=subject)
        raise Problem("forbidden", "This account may not sign in here.", hint="Ask an admin of this server.")
    return issuer, subject


def allowed(rule: str, claims: Mapping[str, Any]) -> bool:
    """Return whether a rule matches a person: `*`, or a pattern for one of the values of a claim. Addresses must be
    verified."""
    if rule == "*":
        return True
    name, _, pattern = rule.partition("=")
    if name == "email" and claims.get("email_verified") is not True:
        return False
    claim = claims.get(name)
    values = claim if isinstance(claim, list) else [claim]
    return any(fnmatchcase(str(value), pattern) for value in values if value)


def _free_name(session: Session, claims: Mapping[str, Any]) -> str:
    """Return an unused name for a new user."""
    claimed = str(claims.get("preferred_username") or str(claims.get("email", "")).partition("@")[0] or "user")
    name = re.sub(r"[^a-z0-9._-]+", "-", claimed.lower())[:56].strip("._-") or "user"
    if name.startswith(("usr_", "prj_")):
        name = "user"
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    free = next(candidate for candidate in names if find_user(session, candidate) is None)
    return TypeAdapter(AccountName).validate_python(free)


def arrived(root: str, path: str = "/") -> HTMLResponse:
    """Return a page that redirects: after a redirect from another site, browsers withhold the session's strict
    cookie."""
    onward = f'<meta http-equiv="refresh" content="0; url={root}{path}">'
    answer = HTMLResponse(f"<!doctype html><title>mleredux</title>{onward}")
    answer.delete_cookie(_COOKIE, path=root + CALLBACK)
    return answer
