"""The HTTP server: receives requests, sends the scenario's replies, records each call."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from aiohttp import web

from mleredux_scripted_llm import anthropic, chat, google, responses
from mleredux_scripted_llm.fragments import CREATED, Frame
from mleredux_scripted_llm.requests import (
    Answer,
    Asked,
    Conversation,
    Message,
    choose,
    read_anthropic,
    read_chat,
    read_google,
    read_responses,
    tokens_in,
)
from mleredux_scripted_llm.scenario import Scenario

CONVERSATION_HEADER = "X-Conversation"
"""Identifies the conversation if several share an API key."""
_MAX_BODY = 64 << 20
_SHOWN = 300
_RENDERERS: dict[str, ModuleType] = {
    "openai-chat": chat,
    "openai-responses": responses,
    "anthropic": anthropic,
    "google": google,
}
_TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
_OVERLOADED = 529
_GOOGLE = re.compile(r"/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)")
_STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}


@dataclass(frozen=True)
class Noted:
    """One call.

    Attributes:
        conversation: The API key, or the value of `X-Conversation`.
        rule: Name (or index) of the rule that replied, None if none did.
        last: Messages since the model's last reply.
    """

    conversation: str
    protocol: str
    model: str
    rule: str | None
    status: int
    last: str
    body: dict[str, Any]

    def line(self) -> str:
        """Return one line for a log."""
        said = " ".join(self.last.split())
        shown = said if len(said) <= _SHOWN else f"{said[: _SHOWN // 2]} … {said[-_SHOWN // 2 :]}"
        what = f"rule {self.rule}" if self.rule is not None else "NO RULE MATCHES"
        return f"{self.status} {self.protocol} {self.model} [{what}] {shown}"


class Server:
    """The application of one scenario.

    Args:
        scenario: Its rules.
        key: The only API key that is accepted; None accepts any, or none.
        note: Called for each call.
    """

    def __init__(self, scenario: Scenario, key: str | None, note: Callable[[Noted], None]) -> None:
        self._scenario = scenario
        self._key = key
        self._note = note
        self._conversations: dict[str, Conversation] = {}

    def application(self) -> web.Application:
        """Return the application for aiohttp's runner."""
        application = web.Application(client_max_size=_MAX_BODY)
        application.add_routes(
            [
                web.get("/health", self._health),
                web.route("*", "/{path:.*}", self._route),
            ]
        )
        return application

    async def _health(self, _request: web.Request) -> web.Response:
        return web.json_response({"status": "running"})

    async def _route(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rstrip("/").removeprefix("/v1beta").removeprefix("/v1")
        named = _GOOGLE.fullmatch(path)
        header = request.headers.get("Authorization", "")
        key = (
            request.headers.get("X-Api-Key")
            or request.headers.get("X-Goog-Api-Key")
            or header.removeprefix("Bearer ").strip()
        )
        as_anthropic = path.startswith("/messages") or "Anthropic-Version" in request.headers
        family = "google" if named or "X-Goog-Api-Key" in request.headers else "openai"
        family = "anthropic" if as_anthropic else family
        if self._key is not None and key != self._key:
            return _error(family, 401, "This API key is not the scenario's.")
        if request.method == "GET" and path == "/models":
            if family == "google":
                return web.json_response({"models": [{"name": f"models/{name}"} for name in self._scenario.models]})
            return web.json_response(self._models(as_anthropic))
        if request.method == "GET" and path.startswith("/models/"):
            name = path.removeprefix("/models/")
            return web.json_response(next(m for m in self._models(as_anthropic, [name])["data"]))
        try:
            body = json.loads(await request.read())
            if not isinstance(body, dict):
                raise ValueError("no object")
        except ValueError:
            return _error(family, 400, "The body is not a JSON object.")
        conversation = request.headers.get(CONVERSATION_HEADER) or key
        state = self._conversations.setdefault(conversation, Conversation())
        if request.method == "POST" and path == "/chat/completions":
            return await self._answer(request, conversation, state, read_chat(body))
        if request.method == "POST" and path == "/responses":
            earlier = state.kept.get(str(body.get("previous_response_id")), ())
            return await self._answer(request, conversation, state, read_responses(body, earlier))
        if request.method == "POST" and path == "/messages":
            return await self._answer(request, conversation, state, read_anthropic(body))
        if request.method == "POST" and path == "/messages/count_tokens":
            return web.json_response({"input_tokens": tokens_in(read_anthropic(body).any)})
        if request.method == "POST" and named:
            asked = read_google(body, named[1], stream=named[2] == "streamGenerateContent")
            if named[2] == "countTokens":
                return web.json_response({"totalTokens": tokens_in(asked.any)})
            return await self._answer(request, conversation, state, asked)
        return _error(family, 404, f"{request.method} {request.path} not found.")

    async def _answer(
        self, request: web.Request, conversation: str, state: Conversation, asked: Asked
    ) -> web.StreamResponse:
        chosen = choose(self._scenario, state, asked)
        if chosen is None:
            self._note(Noted(conversation, asked.protocol, asked.model, None, 400, asked.last, asked.body))
            tools = ", ".join(asked.tools) or "none"
            said = asked.last[-_SHOWN:]
            return _error(
                asked.protocol,
                400,
                f"No rule of the scenario matches this request (tools: {tools}; it ends: {said!r}).",
            )
        rule, answer = chosen
        named = rule.name or f"#{self._scenario.rules.index(rule) + 1}"
        reply = answer.reply
        status = reply.error.status if reply.error else 200
        self._note(Noted(conversation, asked.protocol, asked.model, named, status, asked.last, asked.body))
        await asyncio.sleep(reply.latency)
        if reply.error is not None:
            return _error(asked.protocol, status, reply.error.message, reply.error.type, reply.error.retry_after)
        renderer = _RENDERERS[asked.protocol]
        if asked.protocol == "openai-responses":
            said = (answer.text or "") + "".join(f"\n{name}({arguments})" for name, arguments in answer.tools)
            rest = tuple(message for message in asked.messages if message.role != "system")
            state.kept[responses.identity(answer)] = (*rest, Message("assistant", said))
        if reply.malformed in ("html", "empty", "other-json"):
            return _malformed(reply.malformed)
        if asked.stream:
            return await _stream(request, renderer.stream(answer, asked), answer)
        data = json.dumps(renderer.whole(answer, asked), ensure_ascii=False).encode()
        if reply.malformed == "truncated":
            data = data[: len(data) // 2]
        return web.Response(body=data, content_type="application/json")

    def _models(self, as_anthropic: bool, names: list[str] | None = None) -> dict[str, Any]:
        names = self._scenario.models if names is None else names
        if as_anthropic:
            found = [
                {"type": "model", "id": name, "display_name": name, "created_at": "2023-11-14T22:13:20Z"}
                for name in names
            ]
            return {"data": found, "has_more": False, "first_id": names[0], "last_id": names[-1]}
        listed = [{"id": name, "object": "model", "created": CREATED, "owned_by": "scripted"} for name in names]
        return {"object": "list", "data": listed}


async def _stream(request: web.Request, frames: Iterator[Frame], answer: Answer) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    every = list(frames)
    truncated = answer.reply.malformed == "truncated"
    with contextlib.suppress(ConnectionResetError):  # the client disconnected
        for frame in every[: len(every) // 2] if truncated else every:
            await response.write(frame)
            if answer.reply.chunk_seconds:
                await asyncio.sleep(answer.reply.chunk_seconds)
        if truncated and request.transport is not None:
            request.transport.abort()
            return response
        await response.write_eof()
    return response


def _malformed(kind: str) -> web.Response:
    if kind == "html":
        return web.Response(text="<html><body><h1>Bad gateway</h1></body></html>", content_type="text/html")
    if kind == "empty":
        return web.Response(body=b"", content_type="application/json")
    return web.json_response({"status": "ok"})


def _error(
    protocol: str, status: int, message: str, kind: str | None = None, retry_after: float | None = None
) -> web.Response:
    """Return an error in the protocol's own format."""
    kind = kind or _TYPES.get(status, "overloaded_error" if status == _OVERLOADED else "api_error")
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    if protocol == "anthropic":
        content: dict[str, Any] = {"type": "error", "error": {"type": kind, "message": message}}
    elif protocol == "google":
        content = {"error": {"code": status, "message": message, "status": _STATUSES.get(status, "UNAVAILABLE")}}
    else:
        content = {"error": {"message": message, "type": kind, "param": None, "code": None}}
    return web.json_response(content, status=status, headers=headers)
