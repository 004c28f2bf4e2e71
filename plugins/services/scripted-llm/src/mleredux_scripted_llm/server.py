"""The HTTP server: receives requests, sends the scenario's replies, records each call."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from mleredux_llm_protocols import Action, Family, Turn, frames_of, routes

from mleredux_scripted_llm.requests import Answer, Conversation, Request, choose, identity, read, response_of, tokens_in
from mleredux_scripted_llm.scenario import Scenario

CONVERSATION_HEADER = "X-Conversation"
"""Header that identifies the conversation if several share an API key."""
_MAX_BODY = 64 << 20
_SHOWN = 300
_TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
_OVERLOADED = 529


@dataclass(frozen=True)
class RecordedCall:
    """One recorded call.

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
        """Return the call as one log line."""
        words = " ".join(self.last.split())
        shown = words if len(words) <= _SHOWN else f"{words[: _SHOWN // 2]} … {words[-_SHOWN // 2 :]}"
        what = f"rule {self.rule}" if self.rule is not None else "NO RULE MATCHES"
        return f"{self.status} {self.protocol} {self.model} [{what}] {shown}"


class Server:
    """The web application for one scenario.

    Args:
        scenario: The scenario to follow.
        key: The only API key that is accepted; None accepts any, or none.
        note: Called with each recorded call.
    """

    def __init__(self, scenario: Scenario, key: str | None, note: Callable[[RecordedCall], None]) -> None:
        self._scenario, self._key, self._note = scenario, key, note
        self._conversations: dict[str, Conversation] = {}

    def application(self) -> web.Application:
        """Return the application for aiohttp's runner."""
        application = web.Application(client_max_size=_MAX_BODY)
        application.router.add_route("*", "/{path:.*}", self._route)
        return application

    async def _route(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/health" and request.method in ("GET", "HEAD"):
            return web.json_response({"status": "running"})
        path = routes.below_v1(request.path)
        google, kind, family = routes.google_call(path), routes.kind_at(path), routes.family_at(path, request.headers)
        key = routes.key_in(request.headers)
        if self._key is not None and key != self._key:
            return _error(family, 401, "This API key is not accepted.")
        if request.method == "GET" and path == "/models":
            models: dict[str, Any] = {name: {} for name in self._scenario.models}
            return web.json_response(routes.model_list(family, models, "scripted"))
        if request.method == "GET" and path.startswith("/models/"):
            listed = routes.model_list(
                "openai" if family == "google" else family, {path.removeprefix("/models/"): {}}, "scripted"
            )
            return web.json_response(listed["data"][0])
        try:
            body = json.loads(await request.read())
            if not isinstance(body, dict):
                raise ValueError("no object")
        except ValueError:
            return _error(family, 400, "The body is not a JSON object.")
        if google is not None:
            body |= {"model": google[0], "stream": routes.METHODS[google[1]]}
        conversation = request.headers.get(CONVERSATION_HEADER) or key
        state = self._conversations.setdefault(conversation, Conversation())
        if request.method == "POST" and path == routes.COUNT_TOKENS:
            return web.json_response({"input_tokens": tokens_in(read("messages", body).any)})
        if request.method == "POST" and google is not None and kind is None:
            return web.json_response({"totalTokens": tokens_in(read("generate", body).any)})
        if request.method == "POST" and kind is not None:
            earlier = state.kept.get(str(body.get("previous_response_id")), ()) if kind == "responses" else ()
            return await self._answer(request, conversation, state, read(kind, body, earlier))
        return _error(family, 404, f"{request.method} {request.path} not found.")

    async def _answer(
        self, request: web.Request, conversation: str, state: Conversation, call: Request
    ) -> web.StreamResponse:
        chosen = choose(self._scenario, state, call)
        if chosen is None:
            self._note(RecordedCall(conversation, call.protocol, call.model, None, 400, call.last, call.body))
            tools = ", ".join(call.tools) or "none"
            end = call.last[-_SHOWN:]
            return _error(
                routes.family_of(call.kind),
                400,
                f"No rule of the scenario matches this request (tools: {tools}; it ends: {end!r}).",
            )
        rule, answer = chosen
        named = rule.name or f"#{self._scenario.rules.index(rule) + 1}"
        reply = answer.reply
        status = reply.error.status if reply.error else 200
        self._note(RecordedCall(conversation, call.protocol, call.model, named, status, call.last, call.body))
        await asyncio.sleep(reply.latency)
        if reply.error is not None:
            return _error(
                routes.family_of(call.kind), status, reply.error.message, reply.error.type, reply.error.retry_after
            )
        response = response_of(answer, call)
        if call.kind == "responses":
            actions = tuple(Action("", name, arguments) for name, arguments in answer.tools)
            rest = tuple(turn for turn in call.turns if turn.role != "system")
            state.kept[identity(answer)] = (*rest, Turn("assistant", (answer.text or "",), actions=actions))
        if reply.malformed in ("html", "empty", "other-json"):
            return _malformed(reply.malformed)
        if call.stream:
            usage = bool((call.body.get("stream_options") or {}).get("include_usage"))
            frames = frames_of(call.kind, response, usage=usage, size=reply.chunk)
            return await _stream(request, list(frames), answer)
        data = json.dumps(response, ensure_ascii=False).encode()
        if reply.malformed == "truncated":
            data = data[: len(data) // 2]
        return web.Response(body=data, content_type="application/json")


async def _stream(request: web.Request, frames: list[bytes], answer: Answer) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    truncated = answer.reply.malformed == "truncated"
    with contextlib.suppress(ConnectionResetError):  # the client disconnected
        for frame in frames[: len(frames) // 2] if truncated else frames:
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
    family: Family, status: int, message: str, kind: str | None = None, retry_after: float | None = None
) -> web.Response:
    """Return an error in the protocol's own format."""
    kind = kind or _TYPES.get(status, "overloaded_error" if status == _OVERLOADED else "api_error")
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    return web.json_response(routes.error_body(family, status, kind, message), status=status, headers=headers)
