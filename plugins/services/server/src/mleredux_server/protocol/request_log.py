"""Give each request an id, and log, count and time it, in one wrapper around the application."""

from __future__ import annotations

import time
from typing import Any

import structlog
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mleredux_server.accounts.identity import new_id
from mleredux_server.operations.metrics import Metrics
from mleredux_server.protocol.middleware import request_id

_LOG = structlog.get_logger()
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_QUIET = frozenset({"/healthz", "/readyz", "/metrics"})


class Observing:
    """Assigns request ids, writes the access log, and updates the request metrics.

    Args:
        app: The application.
        metrics: Counts the requests.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, and log it when it is done."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        state["id"] = request_id(scope) or new_id("req")
        began, status, first, streams = time.perf_counter(), 0, 0.0, False

        async def sending(message: Message) -> None:
            nonlocal status, first, streams
            if message["type"] == "http.response.start":
                status, first = message["status"], time.perf_counter() - began
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                headers["X-Request-Id"] = state["id"]
                streams = headers.get("content-type", "").startswith("text/event-stream")
                if streams:
                    self.metrics.followers.inc()
            await send(message)

        # Never unbound: each request has its own context, and errors are logged by an outer layer.
        structlog.contextvars.bind_contextvars(request_id=state["id"])
        self.metrics.in_flight.inc()
        try:
            await self.app(scope, receive, sending)
        finally:
            took = time.perf_counter() - began
            self.metrics.in_flight.dec()
            if streams:
                self.metrics.followers.dec()
            route, method = route_of(scope), scope["method"] if scope["method"] in _METHODS else "other"
            shown = status or 500  # an unhandled error is answered by an outer layer
            self.metrics.requests.labels(route, method, f"{shown // 100}xx").observe(first if streams else took)
            self._log(scope, state, route, method, shown, took)

    def _log(self, scope: Scope, state: Any, route: str, method: str, status: int, took: float) -> None:
        caller = state.get("caller")
        log = _LOG.debug if route in _QUIET else _LOG.info
        log(
            "request",
            method=method,
            route=route,
            path=None if route == scope["path"] else scope["path"][:256],
            status=status,
            ms=round(took * 1000, 1),
            user=None if caller is None else caller.user_id,
        )


def route_of(scope: Scope) -> str:
    """Return the route's template, such as `/v1/runs/{run_id}`; `none` if no route matched."""
    route = scope.get("route")
    return str(getattr(route, "path_format", None) or getattr(route, "path", None) or "none")
