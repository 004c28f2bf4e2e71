"""The gateway's HTTP side: forwards an agent's calls and an upstream's responses, each counted and recorded."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp import web

from mleredux_gateway.answers import COUNT_TOKENS, PATHS, below_v1, error, family_of, given_key, refusal
from mleredux_gateway.bounds import Room
from mleredux_gateway.config import Family, GatewayConfig, Upstream
from mleredux_gateway.meter import Meter, Refused, Ticket
from mleredux_gateway.prices import Prices, cost_of
from mleredux_gateway.record import Record
from mleredux_gateway.screening import objection
from mleredux_gateway.secrets import Mask
from mleredux_gateway.streams import Frames, assembler, content_of
from mleredux_gateway.upstream import Sender, read_whole
from mleredux_gateway.usage import Kind, Tokens, estimated, expected, tokens_of, written_in

MAX_BODY = 32 << 20
_MAX_BODIES = 4
_AT_ONCE = 64
_RECORDED_REFUSALS = 1000
_TO_AGENT = ("content-type", "retry-after", "request-id", "x-request-id", "x-should-retry")


@dataclass
class _Call:
    """A call in progress, and what is known about it so far."""

    number: int
    kind: Kind
    body: dict[str, Any]
    written: bytes
    upstream: Upstream
    began: float = field(default_factory=time.monotonic)
    time: str = field(default_factory=lambda: datetime.now(UTC).isoformat())
    status: int | None = None
    response: Any = None
    tokens: Tokens | None = None
    error: str | None = None
    first_byte: float | None = None

    @property
    def model(self) -> str:
        return str(self.body["model"])

    def wait(self) -> float:
        return round(time.monotonic() - self.began, 4)


class Proxy:
    """Serves the calls of one run.

    Args:
        run_id: Sent to upstreams that require it.
        token: The only key that is accepted.
        config: Upstreams.
        prices: Prices of models.
        meter: Budgets.
        record: The record of calls.
        mask: Masks secrets in responses to the agent.
        known_responses: Ids of responses that the run received before.
    """

    def __init__(
        self,
        run_id: str,
        token: str,
        config: GatewayConfig,
        prices: Prices,
        meter: Meter,
        record: Record,
        mask: Mask,
        known_responses: set[str],
    ) -> None:
        self._sender = Sender(run_id, config, mask)
        self._token, self._config, self._prices = token, config, prices
        self._meter, self._record, self._mask, self._known = meter, record, mask, known_responses
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._room = Room(_MAX_BODIES * MAX_BODY)
        self._refusals = 0

    def application(self) -> web.Application:
        """Return the application for aiohttp's runner."""
        application = web.Application(client_max_size=MAX_BODY)
        application.router.add_route("*", "/{path:.*}", self._answer)
        application.cleanup_ctx.append(self._sender.open)
        return application

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = below_v1(request.path)
        if path == "/health":
            return web.json_response({"status": "running"})
        kind = PATHS.get(path)
        anthropic = "Anthropic-Version" in request.headers or path.startswith("/messages")
        family: Family = "anthropic" if anthropic else "openai"
        if not hmac.compare_digest(given_key(request.headers).encode("utf-8", "replace"), self._token.encode()):
            return error(family, 401, "authentication_error", "Invalid API key for this run.", "invalid_api_key")
        if request.method == "GET" and path == "/budget":
            return web.json_response(self._meter.left())
        if request.method == "GET" and path == "/models":
            return await self._sender.models(family)
        if request.method != "POST" or (kind is None and path != COUNT_TOKENS):
            return error(family, 404, "not_found_error", f"The gateway does not offer {request.method} {request.path}.")
        length = request.content_length
        if length is not None and length > MAX_BODY:
            return error(family, 413, "invalid_request_error", f"The request is larger than {MAX_BODY >> 20} MiB.")
        async with self._room.take(MAX_BODY if length is None else length) as keep:
            try:
                data = await request.read()
                await keep(len(data))
                body = json.loads(data, parse_constant=_no_constant)
                # Serialized again, so that the provider parses the same as the gateway did (e.g. for duplicate keys).
                written = json.dumps(body).encode()
                if not isinstance(body, dict):
                    raise ValueError("no object")
            except (ValueError, RecursionError):
                return error(family, 400, "invalid_request_error", "The body is not a JSON object.")
            return await self._call(request, kind, family, body, written)

    async def _call(
        self, request: web.Request, kind: Kind | None, family: Family, body: dict[str, Any], written: bytes
    ) -> web.StreamResponse:
        upstream = self._config.find(family, str(body.get("model")))
        allowed = upstream is not None and upstream.config.hosted_tools
        if said := objection(kind or "messages", body, self._known, hosted_tools=allowed):
            return self._refuse(kind, family, body, "not_offered", said)
        if upstream is None:
            return self._refuse(
                kind, family, body, "model", f"The gateway offers no model {body['model']!r} for this protocol."
            )
        if kind is None:
            return await self._sender.count_tokens(request, upstream, body)
        async with self._turns:
            wanted = expected(body, len(written))
            price = self._prices.of(body["model"], upstream.config.rename.get(body["model"], body["model"]))
            try:
                ticket = await self._meter.admit(wanted, None if price is None else cost_of(wanted, price))
            except Refused as refused:
                return self._refuse(kind, family, body, refused.reason, refused.message, counted=True)
            call = _Call(self._next(), kind, body, written, upstream)
            self._record.begin(
                call.number,
                time=call.time,
                kind=kind,
                model=call.model,
                upstream=upstream.name,
                host=upstream.host,
                prompt_tokens=wanted.prompt,
            )
            return await self._forward(request, call, ticket)

    async def _forward(self, request: web.Request, call: _Call, ticket: Ticket) -> web.StreamResponse:
        try:
            return await self._exchange(request, call)
        except asyncio.CancelledError:
            call.error = call.error or "The gateway was closed during this call."
            raise
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as failure:
            call.error = call.error or f"{type(failure).__name__}: {failure}"
            call.status = call.status or 502
            said = f"The gateway's upstream is unreachable or closed the connection ({type(failure).__name__})."
            return error(family_of(call.kind), 502, "api_error", said)
        finally:
            await asyncio.shield(self._finish(call, ticket))

    async def _exchange(self, request: web.Request, call: _Call) -> web.StreamResponse:
        body, asked_usage = self._outgoing(call)
        async with self._sender.post(request, call.upstream, f"/{_path(call.kind)}", body) as answer:
            call.status = answer.status
            headers = {name: answer.headers[name] for name in _TO_AGENT if name in answer.headers}
            headers["X-Mleredux-Call"] = str(call.number)
            if answer.status == 200 and answer.content_type == "text/event-stream":
                return await self._stream(request, call, answer, headers, drop_usage=not asked_usage)
            data = await read_whole(answer)
            call.first_byte = call.wait()
            try:
                call.response = json.loads(data)
            except ValueError:
                call.response = data[:4096].decode("utf-8", "replace")
            if isinstance(call.response, dict) and answer.status == 200:
                call.tokens = tokens_of(call.kind, call.response.get("usage"))
            return web.Response(body=self._mask.data(data), status=answer.status, headers=headers)

    async def _stream(
        self,
        request: web.Request,
        call: _Call,
        answer: aiohttp.ClientResponse,
        headers: dict[str, str],
        *,
        drop_usage: bool,
    ) -> web.StreamResponse:
        out = web.StreamResponse(headers={**headers, "Cache-Control": "no-cache"})
        whole, frames = assembler(call.kind), Frames()
        try:
            try:
                await out.prepare(request)
                async for data in answer.content.iter_any():
                    if call.first_byte is None:
                        call.first_byte = call.wait()
                    passed = []
                    for frame in frames.feed(data):
                        event = content_of(frame)
                        if event is not None:
                            whole.feed(event)
                        if drop_usage and event and "choices" in event and not event["choices"] and event.get("usage"):
                            continue  # requested by the gateway, not by the agent
                        passed.append(frame)
                    if passed:
                        await out.write(self._mask.data(b"".join(passed)))
                if rest := frames.rest():
                    await out.write(self._mask.data(rest))
                await out.write_eof()
            except (ConnectionResetError, aiohttp.ClientConnectionResetError):
                call.error = "The agent closed the connection."
            except (aiohttp.ClientError, TimeoutError, ValueError, TypeError, AttributeError) as failure:
                call.error = f"The stream was interrupted ({type(failure).__name__})."
                if request.transport is not None:
                    request.transport.abort()  # so that the agent does not mistake it for the end
        finally:
            call.response = whole.response()
            call.tokens = whole.tokens()
            if call.error is None and not whole.done:
                call.error = "The stream ended early."
        return out

    async def _finish(self, call: _Call, ticket: Ticket) -> None:
        """Count and record a finished call, with or without an error."""
        tokens = call.tokens
        if tokens is None:
            served = call.status == 200 or call.status is None
            tokens = estimated(len(call.written), written_in(call.kind, call.response)) if served else Tokens()
        answered = call.response.get("model") if isinstance(call.response, dict) else None
        renamed = call.upstream.config.rename.get(call.model, call.model)
        price = self._prices.of(call.model, renamed, *([answered] if isinstance(answered, str) else []))
        cost = 0.0 if not tokens.total else None if price is None else cost_of(tokens, price)
        failed = call.status != 200 or (call.error is not None and call.error != "The agent closed the connection.")
        if call.kind == "responses" and isinstance(call.response, dict) and isinstance(call.response.get("id"), str):
            self._known.add(call.response["id"])
        fields = {
            "call": call.number,
            "time": call.time,
            "seconds": call.wait(),
            "first_byte_seconds": call.first_byte,
            "kind": call.kind,
            "model": call.model,
            "stream": bool(call.body.get("stream")),
            "upstream": call.upstream.name,
            "host": call.upstream.host,
            "status": call.status,
            "failed": failed,
            "error": call.error,
            **_counted(tokens),
            "cost_usd": cost,
        }
        try:
            self._record.end(fields, call.body, call.response)
        finally:
            await self._meter.settle(ticket, tokens, cost, failed=failed, model=call.model, host=call.upstream.host)

    def _refuse(
        self, kind: Kind | None, family: Family, body: dict[str, Any], reason: str, said: str, *, counted: bool = False
    ) -> web.Response:
        if not counted:
            self._meter.refuse()
        self._refusals += 1
        if self._refusals <= _RECORDED_REFUSALS:
            model = str(body.get("model"))[:200]
            fields = {"call": self._next(), "time": datetime.now(UTC).isoformat(), "kind": kind, "model": model}
            self._record.end({**fields, "refused": reason, "error": said}, None, None)
        return refusal(family, reason, said)

    def _outgoing(self, call: _Call) -> tuple[bytes, bool]:
        """Return the body for the upstream, and whether the agent itself requested usage in its stream."""
        changes: dict[str, Any] = {}
        renamed, asked = call.upstream.config.rename.get(call.model, call.model), True
        if renamed != call.model:
            changes["model"] = renamed
        if call.kind == "chat" and call.body.get("stream"):
            given = call.body.get("stream_options")
            options = given if isinstance(given, dict) else {}
            asked = bool(options.get("include_usage"))
            changes["stream_options"] = {**options, "include_usage": True}
        return (json.dumps({**call.body, **changes}).encode() if changes else call.written), asked

    def _next(self) -> int:
        number: int = self._record.next
        self._record.next += 1
        return number


def _no_constant(name: str) -> Any:
    """Reject NaN and Infinity: they are not JSON, and providers handle them differently."""
    raise ValueError(name)


def _path(kind: Kind) -> str:
    return next(path for path, of in PATHS.items() if of == kind).lstrip("/")


def _counted(tokens: Tokens) -> dict[str, Any]:
    return {
        "prompt_tokens": tokens.prompt,
        "cached_tokens": tokens.cached,
        "cache_written_tokens": tokens.cache_written,
        "completion_tokens": tokens.completion,
        "estimated": tokens.estimated,
    }
