"""Requests to upstreams: calls, lists of models, token counting; with the upstream's keys and without agents'
headers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import aiohttp
from aiohttp import web
from mleredux_llm_protocols import Family
from mleredux_llm_protocols.routes import COUNT_TOKENS, google_path, model_list

from mleredux_gateway.answers import error
from mleredux_gateway.config import GatewayConfig, Upstream
from mleredux_gateway.fields import BETAS
from mleredux_gateway.screening import is_granted, plain
from mleredux_gateway.secrets import Mask

_MAX_ANSWER = 64 << 20
_TO_UPSTREAM = ("accept", "anthropic-version")
_BETA_HEADERS = ("anthropic-beta", "openai-beta")


class Sender:
    """Sends requests to the upstreams of one run.

    Args:
        run_id: The run's id, sent to upstreams that require it.
        config: The upstreams.
        mask: Masks secrets in responses.
    """

    def __init__(self, run_id: str, config: GatewayConfig, mask: Mask) -> None:
        self._run_id, self._config, self._mask = run_id, config, mask
        self._session: aiohttp.ClientSession | None = None

    async def open(self, _application: web.Application) -> AsyncIterator[None]:
        """Hold connections open while the application runs."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=30)
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=True, connector=connector) as self._session:
            yield

    def post(self, passed: Mapping[str, str], upstream: Upstream, path: str, body: bytes) -> Any:
        """Send a body to an endpoint once, without retries; return the response, for use in `async with`."""
        assert self._session is not None
        # Responses are masked and counted, so they must not be compressed.
        headers = {**passed, "Accept-Encoding": "identity", **upstream.headers(self._run_id)}
        return self._session.post(
            upstream.url(path),
            data=body,
            headers={**headers, "Content-Type": "application/json"},
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=upstream.config.timeout),
        )

    async def models(self, family: Family) -> web.Response:
        """Return the upstreams' offered models; names from the configuration come first."""
        names: dict[str, dict[str, Any]] = {}
        for upstream in self._config.upstreams:
            if upstream.config.protocol != family:
                continue
            plain = [*upstream.config.rename, *(name for name in upstream.config.models if "*" not in name)]
            listed: list[Any] = [{"id": name} for name in plain]
            if not plain:
                listed = await self._listed(upstream)
            for item in listed:
                if isinstance(item, dict) and isinstance(item.get("id"), str) and upstream.offers(item["id"]):
                    names.setdefault(item["id"], item)
        return web.json_response(model_list(family, names, "gateway"))

    async def count_tokens(self, request: web.Request, upstream: Upstream, body: dict[str, Any]) -> web.Response:
        """Count tokens with the upstream; this is free and does not count as a model call."""
        family, model = upstream.config.protocol, upstream.config.rename.get(body["model"], body["model"])
        path, sent = COUNT_TOKENS, {**body, "model": model}
        if family == "google":
            path, sent = google_path(model, "countTokens"), {"contents": body.get("contents")}
        try:
            headers, _ = passed_headers(request, upstream)
            async with self.post(headers, upstream, path, json.dumps(sent).encode()) as answer:
                data = self._mask.data(await read_whole(answer))
                return web.Response(body=data, status=answer.status, content_type="application/json")
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as failure:
            return error(family, 502, "api_error", f"The upstream is unreachable ({type(failure).__name__}).")

    async def _listed(self, upstream: Upstream) -> list[Any]:
        assert self._session is not None
        headers = {**upstream.headers(self._run_id), "Anthropic-Version": "2023-06-01"}
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError, ValueError, KeyError, TypeError):
            async with self._session.get(upstream.url("/models"), headers=headers, allow_redirects=False) as answer:
                content = json.loads(self._mask.data(await read_whole(answer)))
                if upstream.config.protocol == "google":
                    return [{"id": item["name"].removeprefix("models/")} for item in content["models"]]
                return list(content["data"]) if answer.status == 200 and isinstance(content, dict) else []
        return []


def passed_headers(request: web.Request, upstream: Upstream) -> tuple[dict[str, str], list[str]]:
    """Return the headers of an agent's request that are forwarded, and the names of betas that are not."""
    headers = request.headers
    passed, dropped = {name: headers[name] for name in _TO_UPSTREAM if name in headers}, []
    for name in _BETA_HEADERS:
        kept = []
        for value in (value.strip() for line in headers.getall(name, ()) for value in line.split(",")):
            place = f"headers.{name}.{plain(value)}"
            if any(fnmatchcase(value, pattern) for pattern in BETAS) or is_granted(place, upstream.config.allow):
                kept.append(value)
            elif value:
                dropped.append(place)
        if kept:
            passed[name] = ",".join(kept)
    return passed, dropped


async def read_whole(answer: aiohttp.ClientResponse) -> bytes:
    """Read the whole body of a response.

    Raises:
        ValueError: The body is too large.
    """
    data = await answer.content.read(_MAX_ANSWER + 1) if answer.content.at_eof() else b""
    while not answer.content.at_eof():
        data += await answer.content.readany()
        if len(data) > _MAX_ANSWER:
            raise ValueError("the upstream's response is too large")
    return data
