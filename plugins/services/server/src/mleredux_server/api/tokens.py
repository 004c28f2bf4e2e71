"""`/v1/tokens`: API tokens of users. A token's secret is returned once; only its hash is stored."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from datetime import datetime, timedelta

from fastapi import APIRouter, Request, Response
from mleredux_http_api import TokenView
from sqlalchemy.orm import Session

from mleredux_server.accounts.accounts import find_user, live_tokens, make_token, note, visible_project
from mleredux_server.accounts.identity import TOKEN_PREFIX, hash_of
from mleredux_server.accounts.security import AnyCaller, Caller, Keeper, bearer_of
from mleredux_server.database.tables import Member, Token, User, now
from mleredux_server.protocol.idempotency import Answer, Claim, Replayed, claim_of
from mleredux_server.protocol.problems import Problem, existing, not_found
from mleredux_server.runs.views import as_view
from mleredux_server.schemas.accounts import NewToken, TokenRequest
from mleredux_server.schemas.pages import Page, Pages
from mleredux_server.service import Current, service_of

router = APIRouter(prefix="/v1/tokens", tags=["accounts"])


@router.post("", status_code=201, response_model=NewToken)
def create_token(body: TokenRequest, caller: Keeper, request: Request, service: Current) -> Response:
    """Create a token with no more permissions than the requesting one."""
    claim, salt = claim_of(request, caller, body), secrets.token_hex(32)
    try:
        with service.database.writing() as session:
            claim.take(session)
            user = _owner(session, caller, body.user)
            _check_scopes(caller, user, body)
            token, secret = make_token(
                session,
                user,
                body.name,
                list(body.scopes),
                project_id=_bound_to(session, caller, user, body.project),
                expires_at=_end(caller, body),
                value=_value(request, claim, salt) if claim.key else None,
            )
            session.flush()
            note(session, caller, "token.create", token.id)
            view = as_view(TokenView, token, user=user.name).model_dump()
            claim.keep(session, _answer(NewToken(**view, token=salt)))
    except Replayed as first:
        return _first_response(request, claim, first.answer)
    return _answer(NewToken(**view, token=secret)).response()


@router.get("")
def list_tokens(caller: Keeper, service: Current, paging: Pages) -> Page[TokenView]:
    """List the caller's tokens that are not revoked; with an admin's token, those of all users."""
    with service.database.reading() as session:
        rows = session.execute(paging.in_order(live_tokens(caller), Token.id)).all()
    return paging.page(rows, lambda row: row[0].id, lambda row: as_view(TokenView, row[0], user=row[1]))


@router.delete("/{token_id}", status_code=204)
def revoke_token(token_id: str, caller: AnyCaller, request: Request, service: Current) -> None:
    """Revoke a token immediately. Every token may revoke itself."""
    if token_id != caller.token_id:
        caller.require("tokens")
    with service.database.writing() as session:
        token = session.get(Token, token_id)
        if token is None or token.revoked_at is not None or not _may_revoke(caller, token):
            raise not_found("token", token_id)
        token.revoked_at = now()
        note(session, caller, "token.revoke", token.id)
    request.app.state.tokens.forget()


def _may_revoke(caller: Caller, token: Token) -> bool:
    own = token.user_id == caller.user_id and caller.bound_to in (None, token.project_id)
    return caller.all_projects or token.id == caller.token_id or own


def _owner(session: Session, caller: Caller, name_or_id: str | None) -> User:
    if name_or_id is None or name_or_id in (caller.user_id, caller.user_name):
        return session.get_one(User, caller.user_id)
    if not caller.all_projects:
        raise Problem("forbidden", "Only admins can create tokens for other users.")
    user = existing(find_user(session, name_or_id), "user", name_or_id)
    if user.disabled_at is not None:
        raise Problem("conflict", f"User {user.name} is disabled.")
    return user


def _check_scopes(caller: Caller, user: User, body: TokenRequest) -> None:
    lacking = [scope for scope in body.scopes if not caller.may(scope)]
    if lacking:
        raise Problem(
            "forbidden",
            f"This token lacks {', '.join(sorted(set(lacking)))} and can't grant scopes it lacks.",
            hint="Request fewer scopes, or use another token.",
        )
    if "admin" in body.scopes and not (user.admin and body.project is None):
        raise Problem("forbidden", "Only admins' tokens without a project can have the scope admin.")


def _bound_to(session: Session, caller: Caller, user: User, name_or_id: str | None) -> str | None:
    """Return the only project of a new token."""
    if name_or_id is None:
        return caller.bound_to
    project = visible_project(session, caller, name_or_id)
    if caller.bound_to not in (None, project.id) or session.get(Member, (project.id, user.id)) is None:
        raise not_found("project", name_or_id)
    return project.id


def _end(caller: Caller, body: TokenRequest) -> datetime | None:
    """Return the expiry: a token does not outlive the one that created it, unless that one is an admin's."""
    end = now() + timedelta(seconds=body.expires_in) if body.expires_in is not None else None
    if caller.expires_at is None or caller.all_projects:
        return end
    return caller.expires_at if end is None else min(end, caller.expires_at)


def _answer(token: NewToken) -> Answer:
    return Answer(201, {"Location": "/v1/tokens", "Cache-Control": "no-store"}, token.model_dump_json())


def _first_response(request: Request, claim: Claim, kept: Answer) -> Response:
    """Rebuild the first response, whose token was not stored but can be derived again."""
    view = NewToken.model_validate_json(kept.body)
    value = _value(request, claim, view.token)
    with service_of(request).database.reading() as session:
        token = session.get(Token, view.id)
    if token is None or token.hash != hash_of(value):
        hint = f"Revoke {view.id}, and create another with a new Idempotency-Key."
        raise Problem("conflict", "The new token was returned to a different token and is not stored.", hint=hint)
    return _answer(view.model_copy(update={"token": value})).response(replayed=True)


def _value(request: Request, claim: Claim, salt: str) -> str:
    """Derive a token that can be returned again to the same caller, though only its hash and the salt are stored."""
    mixed = hmac.new(bearer_of(request).encode(), f"{salt}\0{claim.key}".encode(), hashlib.sha256).digest()
    return TOKEN_PREFIX + base64.urlsafe_b64encode(mixed).decode().rstrip("=")
