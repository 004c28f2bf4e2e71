"""Middleware around every request: limits, headers, and a message for internal errors."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import structlog
from fastapi import FastAPI, Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mleredux_server.accounts.limits import Limits
from mleredux_server.accounts.security import authenticate
from mleredux_server.protocol.etags import EntityTags
from mleredux_server.protocol.problems import Problem, answer, of_error
from mleredux_server.protocol.requests import Heads, Preconditions
from mleredux_server.service import Service

_LOG = structlog.get_logger()
_UPLOADS = frozenset({"/v1/sources", "/v1/submissions", "/v1/validations", "/ui/submissions"})
"""Paths of uploads, whose bodies are limited when they are received."""
BODY_SECONDS = 60.0
"""Time limit in seconds for a body, counted from the first read; for an upload, for each part that arrives."""
_MOST_HEADERS = 100
_MOST_HEADER_BYTES = 32 * 1024
_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")
_HEADERS = {
    "Cache-Control": "private, no-cache",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def install(app: FastAPI, service: Service) -> None:
    """Add the middleware to an app."""
    app.state.limits = Limits(service.settings.requests_per_minute)
    app.add_middleware(EntityTags)
    app.add_middleware(Preconditions)
    app.add_middleware(Heads)
    app.add_middleware(Guard, most_bytes=service.settings.max_body_kb * 1024)


def request_id(scope: Scope) -> str | None:
    """Return the request id that the client sent, if it is valid."""
    value = Headers(scope=scope).get("x-request-id", "")
    return value if _REQUEST_ID.fullmatch(value) else None


class Guard:
    """Refuses requests that are too large or malformed, and completes the headers of responses.

    Args:
        app: The application.
        most_bytes: Maximum body size of requests other than uploads.
    """

    def __init__(self, app: ASGIApp, most_bytes: int) -> None:
        self.app, self.most_bytes = app, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answering = _Answering(scope, receive, send)
        if (problem := self._refused(scope)) is not None:
            await answering.send_problem(problem)
            return
        if scope["path"].startswith("/v1/"):  # before any of the body is read
            try:
                await authenticate(Request(scope))
            except (Problem, SQLAlchemyError) as error:
                await answering.send_problem(of_error(error))
                return
        body = _Body(receive, None if _is_upload(scope) else self.most_bytes)

        async def sending(message: Message) -> None:
            if body.problem is not None and not answering.started:
                await answering.send_problem(body.problem)
            elif not answering.sent_problem:
                await answering.send(message)

        try:
            await self.app(scope, body.receive, sending)
        except _BodyRefused as refused:
            if not answering.started:
                await answering.send_problem(refused.problem)
        except Exception as error:  # last resort: a message for the client, details in the log
            _LOG.error("request failed", problem="internal", exc_info=error)
            if answering.started:
                raise
            await answering.send_problem(of_error(error))

    def _refused(self, scope: Scope) -> Problem | None:
        if len(scope["headers"]) > _MOST_HEADERS:
            return Problem("too-large", f"The request has more than {_MOST_HEADERS} headers.")
        if sum(len(name) + len(value) for name, value in scope["headers"]) > _MOST_HEADER_BYTES:
            return Problem("too-large", f"The request's headers are larger than {_MOST_HEADER_BYTES // 1024} KB.")
        if "\0" in scope["path"] or b"%00" in scope["query_string"] or b"\0" in scope["query_string"]:
            return Problem("invalid", "The request's URL contains a NUL character.")
        length = Headers(scope=scope).get("content-length", "0")
        if not _is_upload(scope) and length.isdecimal() and (len(length) > 18 or int(length) > self.most_bytes):
            return _too_large(self.most_bytes)
        return None


class _BodyRefused(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


class _Body:
    """Counts a body as it arrives, regardless of its declared length, and waits for it only for a limited time."""

    def __init__(self, receive: Receive, most: int | None) -> None:
        self._receive, self._most, self._size = receive, most, 0
        self._end: float | None = None
        self._complete = False
        self.problem: Problem | None = None

    async def receive(self) -> Message:
        if self._complete:  # from now on, only a disconnect of the client is expected
            return await self._receive()
        if self._end is None or self._most is None:
            self._end = asyncio.get_running_loop().time() + BODY_SECONDS
        try:
            async with asyncio.timeout_at(self._end):
                message = await self._receive()
        except TimeoutError:
            raise self._refused(
                Problem(
                    "too-slow", f"The request's body took longer than {BODY_SECONDS:.0f} seconds.", hint="Try again."
                )
            ) from None
        self._complete = not message.get("more_body", False)
        if message["type"] == "http.request" and self._most is not None:
            self._size += len(message.get("body", b""))
            if self._size > self._most:
                raise self._refused(_too_large(self._most))
        return message

    def _refused(self, problem: Problem) -> _BodyRefused:
        self.problem = problem
        return _BodyRefused(problem)


class _Answering:
    """Sends the response with the common headers."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self.started = self.sent_problem = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            self._complete(MutableHeaders(raw=message.setdefault("headers", [])))
        await self._send(message)

    async def send_problem(self, problem: Problem) -> None:
        """Send a problem instead of any other response."""
        self.sent_problem = True
        if problem.slug in ("too-large", "too-slow"):  # the rest of the body is not read
            problem.headers["Connection"] = "close"
        self._scope.setdefault("state", {})
        await answer(Request(self._scope), problem)(self._scope, self._receive, self.send)

    def _complete(self, headers: MutableHeaders) -> None:
        for name, value in _HEADERS.items():
            headers.setdefault(name, value)
        standing: Any = self._scope.get("state", {}).get("rate")
        if standing is not None:
            for name, value in standing.headers().items():
                headers[name] = value


def _is_upload(scope: Scope) -> bool:
    return scope["method"] == "POST" and scope["path"] in _UPLOADS


def _too_large(most: int) -> Problem:
    return Problem("too-large", f"The request's body is larger than {most // 1024} KB.", hint="Send a smaller request.")
