"""Sign in, and check each request to the pages: its user, its origin and the rate limit."""

from __future__ import annotations

import hmac
from typing import Any
from urllib.parse import parse_qs, quote

from fastapi import FastAPI, Request
from mleredux.errors import MlereduxError
from mleredux.plugin.page import Action, Page, Panel
from mleredux_view.shared import HEADERS, Registered, add_message, from_here, make_site, sign_in_page
from sqlalchemy import update
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mleredux_server.accounts.identity import hash_of
from mleredux_server.accounts.security import Caller, Tokens, caller_of
from mleredux_server.database.tables import Token, now
from mleredux_server.files.uploads import received
from mleredux_server.protocol.problems import Problem
from mleredux_server.runs.submissions import check_form, is_prepared, make_submission
from mleredux_server.service import Service
from mleredux_server.web.mount import ROOT
from mleredux_server.web.oidc import CALLBACK, Provider, arrived
from mleredux_server.web.sessions import Session, Sessions
from mleredux_server.web.source import ServerSource

_COOKIE = "mleredux-session"
_FORM_BYTES = 10_000
_WHERE = "mleredux_server.web"
_OWN = [
    Registered(item, "server")
    for item in (
        Page(path="/server", template="server.html.j2", function=f"{_WHERE}.page:server"),
        Page(
            path="/submissions/{submission_id}",
            template="submission.html.j2",
            function=f"{_WHERE}.submissions:submission",
        ),
        Action(path="/deadlines", function=f"{_WHERE}.submissions:hold_back"),
        Panel(title="Queue", template="queued.html.j2", function=f"{_WHERE}.page:queued"),
        Panel(title="Submit", template="submit.html.j2", function=f"{_WHERE}.submissions:on_task", place="task"),
    )
]


def signed_in(app: FastAPI) -> ASGIApp:
    """Wrap an app's pages so that only signed-in users see them."""
    state = app.state

    def source_of(request: Request) -> ServerSource:
        return ServerSource(state.service, request.scope["caller"], state.masks)

    return SignedIn(make_site(source_of, ROOT, _OWN, actions=False), app)


class SignedIn:
    """Answers requests of signed-in users; others get the sign-in page.

    Args:
        pages: The pages; their scope gets `caller` and `session_secret`.
        app: The server's application, with the tokens and limits.
    """

    def __init__(self, pages: ASGIApp, app: FastAPI) -> None:
        self._pages, self._app, self._sessions = pages, app, Sessions()
        settings = app.state.service.settings
        self._provider = Provider(settings, ROOT) if settings.oidc_issuer else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        scope["app"] = self._app
        answer = await self._answer(request)

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                own = ((name.lower().encode(), value.encode()) for name, value in HEADERS.items())
                headers = [*message["headers"], *(header for header in own if header[0] not in present)]
                message = {**message, "headers": headers}
            await send(message)

        await answer(scope, receive, sending)

    async def _answer(self, request: Request) -> ASGIApp:
        path = request.scope["path"].removeprefix(ROOT)
        if path.startswith("/static/"):
            return self._pages
        if request.method not in ("GET", "HEAD") and not from_here(request.headers, request.headers.get("host", "")):
            return PlainTextResponse("The request comes from another site.\n", 403)
        cookie = request.cookies.get(_COOKIE, "")
        session = self._sessions.find(cookie)
        try:
            if path == "/sign-in" and request.method == "POST":
                return await self._sign_in(request)
            if self._provider is not None and path == "/oidc":
                return await self._provider.begin(request)
            if self._provider is not None and path == CALLBACK:
                return await self._finish_sign_in(request, self._provider)
            caller = await self._caller(request, session)
            if self._provider is not None and session is not None and caller is not None and path == "/oidc/link":
                return await self._link(request, self._provider, session, caller)
        except Problem as problem:
            return self._form(problem)
        if session is None or caller is None:
            looking = request.method in ("GET", "HEAD")
            return self._form() if looking else self._form(Problem("unauthenticated", "Sign in again."))
        if path == "/sign-out" and request.method == "POST":
            return await self._sign_out(request, cookie, session)
        if path == "/submissions" and request.method == "POST":
            return await self._submit(request, caller, session)
        request.scope["caller"], request.scope["session_secret"] = caller, session.form_secret
        return self._pages

    async def _caller(self, request: Request, session: Session | None) -> Caller | None:
        """Return the user of a session, if its token is still valid; each request counts toward the user's rate
        limit."""
        if session is None:
            return None
        tokens: Tokens = self._app.state.tokens
        caller = await run_in_threadpool(tokens.by_hash, session.token)
        if caller is not None:
            self._app.state.limits.count_request(request, caller.user_id)
        return caller

    async def _submit(self, request: Request, caller: Caller, session: Session) -> Response:
        """Receive predictions like the API; their format is checked immediately if the task is prepared."""
        service: Service = self._app.state.service
        task = shown = ""
        try:
            caller.require("grade")
            async with received(request, service, caller, service.settings.max_upload_mb << 20) as upload:
                if not hmac.compare_digest(upload.fields.get("csrf", "").encode(), session.form_secret.encode()):
                    return PlainTextResponse("The form was not created by this site.\n", 403)
                task = service.catalogue.task(upload.text("task")).id
                if await run_in_threadpool(is_prepared, service, service.catalogue.task(task)):
                    verdict = await run_in_threadpool(check_form, service, upload)
                    add_message(session.form_secret, f"{'Valid' if verdict.valid else 'Not valid'}: {verdict.message}")
                    if not verdict.valid:
                        return RedirectResponse(_task_page(task), 303)
                shown = (await run_in_threadpool(make_submission, service, caller, upload)).id
        except MlereduxError as error:
            add_message(session.form_secret, str(error))
        return RedirectResponse(f"{ROOT}/submissions/{shown}" if shown else _task_page(task), 303)

    async def _sign_in(self, request: Request) -> Response:
        token = (await _fields(request)).get("token", [""])[-1].strip()
        await caller_of(request, token)
        return self._begin(request, token, RedirectResponse(f"{ROOT}/", 303))

    async def _finish_sign_in(self, request: Request, provider: Provider) -> Response:
        self._app.state.limits.check_guess(request)
        try:
            token = await provider.finish(request, self._app.state.service)
        except Problem:
            self._app.state.limits.count_failure(request)
            raise
        if token is None:
            return arrived(ROOT, "/server")
        return self._begin(request, token, arrived(ROOT), own=True)

    async def _link(self, request: Request, provider: Provider, session: Session, caller: Caller) -> Response:
        """Redirect a user to the provider, to link an account; the strict cookie proves that the request comes from
        this site."""
        try:
            return await provider.begin(request, caller)
        except Problem as problem:
            add_message(session.form_secret, str(problem))
            return RedirectResponse(f"{ROOT}/server", 303)

    def _begin(self, request: Request, token: str, answer: Response, *, own: bool = False) -> Response:
        secure, cookie = request.url.scheme == "https", self._sessions.begin(hash_of(token), own=own)
        answer.set_cookie(_COOKIE, cookie, httponly=True, samesite="strict", path=ROOT, secure=secure)
        return answer

    def _form(self, problem: Problem | None = None) -> Response:
        """Return the sign-in page, with status 401 so that scripts notice."""
        status = 401 if problem is None or problem.slug == "unauthenticated" else problem.status
        headers = problem.headers if problem else {}
        headers = {name: value for name, value in headers.items() if name.lower() != "www-authenticate"}
        page = sign_in_page(ROOT, problem.detail if problem else "", self._provider.name if self._provider else "")
        return HTMLResponse(page, status, headers)

    def _revoke(self, token_hash: str) -> None:
        service: Service = self._app.state.service
        with service.database.writing() as session:
            session.execute(update(Token).where(Token.hash == token_hash).values(revoked_at=now()))
        self._app.state.tokens.forget()

    async def _sign_out(self, request: Request, cookie: str, session: Session) -> Response:
        form_secret = (await _fields(request)).get("csrf", [""])[-1]
        if not hmac.compare_digest(form_secret.encode(), session.form_secret.encode()):
            return PlainTextResponse("The form was not created by this site.\n", 403)
        self._sessions.end(cookie)
        if session.own:
            await run_in_threadpool(self._revoke, session.token)
        answer = RedirectResponse(f"{ROOT}/", 303)
        answer.delete_cookie(_COOKIE, path=ROOT)
        return answer


def _task_page(task: str) -> str:
    return f"{ROOT}/tasks/{quote(task, safe='')}" if task else f"{ROOT}/tasks"


async def _fields(request: Request) -> dict[str, list[str]]:
    body = b""
    async for piece in request.stream():
        if len(body := body + piece) > _FORM_BYTES:
            raise Problem("too-large", "The form is too large.")
    return parse_qs(body.decode("utf-8", "replace"))
