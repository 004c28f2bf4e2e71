"""The HTTP part of the gateway: forward an agent's calls and an upstream's responses, counting and recording each."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp import web
from mleredux_llm_protocols import Family, Kind, Splitter, assembler, content_of, frames_of, reported, routes

from mleredux_gateway.answers import error, refusal
from mleredux_gateway.bounds import Room
from mleredux_gateway.calls import AGENT_LEFT, Call
from mleredux_gateway.config import GatewayConfig
from mleredux_gateway.demand import Prompts, Received, changed, demand_of, google_bounds, limits_of
from mleredux_gateway.meter import Meter, Refused
from mleredux_gateway.prices import Prices
from mleredux_gateway.record import Record
from mleredux_gateway.replay import Replay
from mleredux_gateway.screening import screen
from mleredux_gateway.secrets import Mask
from mleredux_gateway.upstream import Sender, passed_headers, read_whole

MAX_BODY = 32 << 20
_MAX_BODIES = 4
_AT_ONCE = 64
_DRAIN_SECONDS, _DRAIN_BYTES = 600, 64 << 20
"""Maximum seconds and bytes for reading the rest of an answer after the agent disconnected; beyond these, the
reservation is charged."""
_RECORDED_REFUSALS = 1000
_TO_AGENT = ("content-type", "retry-after", "request-id", "x-request-id", "x-should-retry")


class Proxy:
    """Serves the calls of one run.

    Args:
        run_id: The run's id, sent to upstreams that require it.
        token: The only key that is accepted.
        config: The upstreams.
        prices: Prices of models.
        meter: The budgets.
        record: The record of calls.
        mask: Masks secrets in responses to the agent.
        received: Responses that the run received earlier.
        replay: The answers of an earlier run; if set, only these are returned.
        diverged: Called with a sentence about each call that has no counterpart in the replay.
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
        received: Received,
        replay: Replay | None = None,
        diverged: Callable[[str], None] = lambda _said: None,
    ) -> None:
        self._sender = Sender(run_id, config, mask)
        self._token, self._config, self._prices = token, config, prices
        self._meter, self._record, self._mask, self._received = meter, record, mask, received
        self._prompts = Prompts()
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._room = Room(_MAX_BODIES * MAX_BODY)
        self._refusals = 0
        self._replay, self._diverged = replay, diverged

    def application(self) -> web.Application:
        """Return the application for aiohttp's runner."""
        application = web.Application(client_max_size=MAX_BODY)
        application.router.add_route("*", "/{path:.*}", self._answer)
        application.cleanup_ctx.append(self._sender.open)
        return application

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = routes.below_v1(request.path)
        if path == "/health":
            return web.json_response({"status": "running"})
        named, kind, family = routes.google_call(path), routes.kind_at(path), routes.family_at(path, request.headers)
        if not hmac.compare_digest(routes.key_in(request.headers).encode("utf-8", "replace"), self._token.encode()):
            return error(family, 401, "authentication_error", "Invalid API key for this run.", "invalid_api_key")
        if request.method == "GET" and path == "/budget":
            return web.json_response(self._meter.left())
        if request.method == "GET" and path == "/models":
            return await self._sender.models(family)
        if request.method != "POST" or (kind is None and named is None and path != routes.COUNT_TOKENS):
            return error(family, 404, "not_found_error", f"{request.method} {request.path} is not supported.")
        if named is not None and routes.METHODS[named[1]] and request.query.get("alt") != "sse":
            return error(family, 400, "invalid_request_error", "The gateway only streams events: add `?alt=sse`.")
        length = request.content_length
        if length is not None and length > MAX_BODY:
            return error(family, 413, "invalid_request_error", f"The request is larger than {MAX_BODY >> 20} MiB.")
        async with self._room.take(MAX_BODY if length is None else length) as keep:
            try:
                data = await request.read()
                await keep(len(data))
                body = json.loads(data.decode(), parse_constant=_no_constant)
                # The body is serialized again, so that the provider parses it exactly as the gateway did (duplicate
                # keys, for example).
                if not isinstance(body, dict):
                    raise ValueError("no object")
                if named is not None:
                    body |= {"model": named[0], "stream": routes.METHODS[named[1]]}
                written = json.dumps(body).encode()
            except (ValueError, RecursionError):
                return error(family, 400, "invalid_request_error", "The body is not a JSON object.")
            return await self._call(request, kind, family, body, written)

    async def _call(
        self, request: web.Request, kind: Kind | None, family: Family, body: dict[str, Any], written: bytes
    ) -> web.StreamResponse:
        upstream = self._config.find(family, str(body.get("model")))
        allowed = upstream.config.allow if upstream is not None else ()
        screened = screen(
            kind or ("generate" if family == "google" else "messages"), body, self._received.__contains__, allowed
        )
        if screened.nulls:
            written = json.dumps(body).encode()
        if screened.refusals:
            fields = [refusal.field for refusal in screened.refusals]
            return self._refuse(kind, family, body, "not_offered", screened.refusals[0].why, fields=fields)
        if upstream is None:
            sentence = (
                f"The gateway does not offer the model {body['model']!r} for this protocol: choose another, "
                "or grant this one with --allow-llm-model."
            )
            return self._refuse(kind, family, body, "model", sentence)
        if kind is None and self._replay is not None:
            return error(family, 404, "not_found_error", "No tokens are counted in a replay.")
        if kind is None:
            return await self._sender.count_tokens(request, upstream, body)
        async with self._turns:
            prompt = self._prompts.bound(body, written, screened)
            tokens = prompt.tokens + self._received.tokens(screened.references)
            # The provider's own model name decides, since it determines the bill.
            priced = self._prices.of(upstream.config.rename.get(body["model"], body["model"]), body["model"])
            known = priced.price.max_output if priced is not None else None
            bounds = google_bounds(body) if kind == "generate" else body
            demand = demand_of(bounds, tokens, known, upstream.config.max_output, hour=b'"1h"' in written)
            try:
                ticket = await self._meter.admit(demand, None if priced is None else priced.price, upstream.host)
            except Refused as refused:
                return self._refuse(kind, family, body, refused.reason, refused.message, counted=True)
            headers, dropped = passed_headers(request, upstream)
            for name in dropped:
                self._meter.note(name)
            characters = len(written) - screened.image_characters
            call = Call(
                self._next(),
                kind,
                body,
                written,
                prompt,
                characters,
                upstream,
                headers,
                dropped,
                demand,
                ticket,
                priced,
                free=self._replay is not None,
            )
            self._record.begin(call.begun())
            return await self._forward(request, call)

    async def _forward(self, request: web.Request, call: Call) -> web.StreamResponse:
        try:
            if request.transport is None or request.transport.is_closing():
                call.sent, call.error = False, "The agent closed the connection before the call was forwarded."
                return web.Response()
            return await (self._exchange(request, call) if self._replay is None else self._repeat(request, call))
        except asyncio.CancelledError:
            call.error = call.error or "The gateway was closed during this call."
            raise
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as failure:
            call.sent = not isinstance(failure, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError))
            call.error = call.error or f"{type(failure).__name__}: {failure}"
            call.status = call.status or 502
            sentence = f"The gateway's upstream is unreachable or closed the connection ({type(failure).__name__})."
            return error(routes.family_of(call.kind), 502, "api_error", sentence)
        finally:
            await asyncio.shield(self._finish(call))

    async def _exchange(self, request: web.Request, call: Call) -> web.StreamResponse:
        body, usage_requested = self._outgoing(call)
        async with self._sender.post(call.headers, call.upstream, _path(call), body) as answer:
            call.status = answer.status
            headers = {name: answer.headers[name] for name in _TO_AGENT if name in answer.headers}
            headers["X-Mleredux-Call"] = str(call.number)
            if answer.status == 200 and answer.content_type == "text/event-stream":
                return await self._stream(request, call, answer, headers, drop_usage=not usage_requested)
            data = await read_whole(answer)
            call.first_byte = call.wait()
            try:
                call.response = json.loads(data)
            except ValueError:
                call.response = data[:4096].decode("utf-8", "replace")
            call.tokens = reported(call.kind, call.response)
            return web.Response(body=self._mask.data(data), status=answer.status, headers=headers)

    async def _repeat(self, request: web.Request, call: Call) -> web.StreamResponse:
        """Answer from the record of an earlier run; an error states how the request differs from the recorded one."""
        assert self._replay is not None
        answer = self._replay.answer(call.kind, call.body)
        if isinstance(answer, str):
            call.status, call.error = 403, answer
            self._diverged(answer)
            return error(routes.family_of(call.kind), 403, "replay_diverged", answer, "replay_diverged")
        call.status, call.response, call.first_byte = int(answer["status"]), answer.get("response"), call.wait()
        if call.response is None:
            return error(routes.family_of(call.kind), call.status, "api_error", str(answer.get("error")))
        headers = {"X-Mleredux-Call": str(call.number)}
        if not isinstance(call.response, dict):
            return web.Response(text=str(call.response), status=call.status, headers=headers)
        call.tokens = reported(call.kind, call.response)
        if call.status != 200 or not call.body.get("stream"):
            return web.json_response(call.response, status=call.status, headers=headers)
        out = web.StreamResponse(headers={**headers, "Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await out.prepare(request)
        options = call.body.get("stream_options")
        usage = isinstance(options, dict) and bool(options.get("include_usage"))
        for frame in frames_of(call.kind, call.response, usage=usage):
            await out.write(frame)
        await out.write_eof()
        return out

    async def _stream(
        self,
        request: web.Request,
        call: Call,
        answer: aiohttp.ClientResponse,
        headers: dict[str, str],
        *,
        drop_usage: bool,
    ) -> web.StreamResponse:
        out = web.StreamResponse(headers={**headers, "Cache-Control": "no-cache"})
        whole, frames, read = assembler(call.kind), Splitter(), 0
        try:
            await out.prepare(request)
            async with asyncio.timeout(None) as drain:
                async for data in answer.content.iter_any():
                    if call.first_byte is None:
                        call.first_byte = call.wait()
                    passed = []
                    for frame in frames.feed(data):
                        event = content_of(frame)
                        if event is not None:
                            whole.feed(event)
                        if drop_usage and event and "choices" in event and not event["choices"] and event.get("usage"):
                            continue  # the gateway requested this, not the agent
                        passed.append(frame)
                    if call.error is None:
                        try:
                            await out.write(self._mask.data(b"".join(passed)))
                        except ConnectionResetError:
                            # The provider continues and bills the rest, so wait for the end, which contains the usage.
                            call.error = AGENT_LEFT
                            drain.reschedule(asyncio.get_running_loop().time() + _DRAIN_SECONDS)
                    elif (read := read + len(data)) > _DRAIN_BYTES:
                        break
                else:
                    call.tokens = whole.tokens() if whole.done else None
            if call.error is None:
                if rest := frames.rest():
                    await out.write(self._mask.data(rest))
                await out.write_eof()
        except ConnectionResetError:
            call.error = AGENT_LEFT
        except (aiohttp.ClientError, TimeoutError, ValueError, TypeError, AttributeError) as failure:
            call.error = call.error or f"The stream was interrupted ({type(failure).__name__})."
            if request.transport is not None:
                request.transport.abort()  # so that the agent does not mistake it for the end
        finally:
            call.response = whole.response()
            if call.error is None and not whole.done:
                call.error = "The stream ended early."
        return out

    async def _finish(self, call: Call) -> None:
        """Count and record a finished call, whether or not it failed."""
        name = "modelVersion" if call.kind == "generate" else "model"
        answered = call.response.get(name) if isinstance(call.response, dict) else None
        if call.priced is None and isinstance(answered, str):
            call.priced = self._prices.of(answered)
        tokens, cost = call.charge()
        if call.tokens is tokens:
            self._prompts.learn(call.prompt, tokens.prompt)
        if call.kind == "responses":
            self._received.add(call.body, call.response, tokens)
        self._meter.outages.note(call.began, time.monotonic(), down=call.down)
        line = {**call.ended(tokens, cost), "outage_seconds": round(self._meter.outages.total, 3)}
        try:
            self._record.end(line, call.body, call.response)
        finally:
            facts = {name: line[f"{name}"] for name in ("failed", "model", "host")}
            await self._meter.settle(call.ticket, tokens, cost, table=line["price_table"], **facts)

    def _refuse(
        self,
        kind: Kind | None,
        family: Family,
        body: dict[str, Any],
        reason: str,
        sentence: str,
        *,
        counted: bool = False,
        fields: Sequence[str] = (),
    ) -> web.Response:
        if not counted:
            self._meter.refuse()
        for name in fields:
            self._meter.note(name)
        self._refusals += 1
        if self._refusals <= _RECORDED_REFUSALS:
            model = str(body.get("model"))[:200]
            line = {"call": self._next(), "time": datetime.now(UTC).isoformat(), "kind": kind, "model": model}
            self._record.end({**line, "refused": reason, "fields": list(fields), "error": sentence}, None, None)
        return refusal(family, reason, sentence)

    def _outgoing(self, call: Call) -> tuple[bytes, bool]:
        """Return the body for the upstream, and whether the agent itself requested usage in its stream."""
        changes: dict[str, Any] = {}
        renamed, usage_requested = call.upstream.config.rename.get(call.model, call.model), True
        if call.kind == "generate":
            changes = {"model": None, "stream": None}  # they are part of the URL
        elif renamed != call.model:
            changes["model"] = renamed
        if call.kind == "chat" and call.body.get("stream"):
            stream_options = call.body.get("stream_options")
            options = stream_options if isinstance(stream_options, dict) else {}
            usage_requested = bool(options.get("include_usage"))
            changes["stream_options"] = {**options, "include_usage": True}
        if call.ticket.tokens is not None:
            changes |= limits_of(call.kind, call.body, call.demand, call.ticket.answer, call.upstream)
        return changed(call.body, call.written, changes), usage_requested

    def _next(self) -> int:
        number: int = self._record.next
        self._record.next += 1
        return number


def _no_constant(name: str) -> Any:
    """Reject NaN and Infinity: they are not JSON, and providers handle them differently."""
    raise ValueError(name)


def _path(call: Call) -> str:
    if call.kind == "generate":
        model = call.upstream.config.rename.get(call.model, call.model)
        return routes.google_path(model, "streamGenerateContent" if call.body["stream"] else "generateContent")
    return next(path for path, kind in routes.PATHS.items() if kind == call.kind)
