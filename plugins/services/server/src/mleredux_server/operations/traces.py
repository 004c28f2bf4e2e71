"""OpenTelemetry traces of requests, scheduling and runs, if its standard variables name a collector.

A run's trace begins with the request that created it, or with the caller's span in the header `traceparent`.
Spans contain ids, names, states and times, but no contents, prompts or values of options.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import Run
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mleredux_server.protocol.request_log import route_of

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace.export import SpanExporter

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PARENT = "traceparent"
_SHOWN = ("task", "agent", "sandbox", "seed", "experiment")
_here: ContextVar[str | None] = ContextVar("mleredux_traceparent", default=None)


def traceparent() -> str | None:
    """Return the `traceparent` of the current request; None if it is not traced."""
    return _here.get()


def open_tracing(variables: Mapping[str, str] | None = None) -> Tracing | None:
    """Return the sender of traces; None if no variable enables it.

    Raises:
        MlereduxError: The packages for it are not installed, or the protocol is not supported.
    """
    values = os.environ if variables is None else variables
    off = values.get("OTEL_SDK_DISABLED", "").lower() == "true" or values.get("OTEL_TRACES_EXPORTER", "otlp") == "none"
    named = next((name for name in _ENDPOINTS if values.get(name)), None)
    if off or named is None:
        return None
    protocol = next((values[name] for name in _PROTOCOLS if values.get(name)), "http/protobuf")
    if protocol != "http/protobuf":
        raise MlereduxError(f"Traces can't be sent with {protocol[:100]}.", hint="Set it to http/protobuf.")
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        hint = "`pip install 'mleredux-server[otel]'`, or unset it."
        raise MlereduxError(f"{named} is set, but the OpenTelemetry exporter is not installed.", hint=hint) from error
    return Tracing(OTLPSpanExporter())


class Tracing:
    """Creates spans, and sends them in batches from a separate thread.

    Args:
        exporter: Exports the spans.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        name = os.environ.get("OTEL_SERVICE_NAME", "mleredux")
        self._provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("mleredux_server")
        self._format = TraceContextTextMapPropagator()

    def close(self) -> None:
        """Send the remaining spans."""
        self._provider.shutdown()

    def traced(self, app: ASGIApp) -> ASGIApp:
        """Wrap an application: each request has a span."""
        from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

        async def handle(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or scope["path"] in ("/healthz", "/readyz", "/metrics"):
                await app(scope, receive, send)
                return
            status = 500

            async def sending(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            parent = self._context(Headers(scope=scope).get(_PARENT))
            span = self._tracer.start_span(scope["method"], parent, SpanKind.SERVER)
            carrier: dict[str, str] = {}
            self._format.inject(carrier, set_span_in_context(span))
            _here.set(carrier.get(_PARENT))  # never reset: each request has its own context
            try:
                await app(scope, receive, sending)
            finally:
                route = route_of(scope)
                span.update_name(f"{scope['method']} {route}")
                facts = {"http.request.method": scope["method"], "http.route": route}
                span.set_attributes({**facts, "http.response.status_code": status})
                if status >= 500:
                    span.set_status(Status(StatusCode.ERROR))
                span.end()

        return handle

    def decided(self, began: float, ended: float, waiting: int, started: int) -> None:
        """Record a round of the scheduler that started runs; times in seconds since the epoch."""
        span = self._tracer.start_span("schedule", start_time=int(began * 1e9))
        span.set_attributes({"mleredux.queued": waiting, "mleredux.started": started})
        span.end(int(ended * 1e9))

    def run_ended(self, run: Run, parent: str | None) -> None:
        """Record a run with its stages and its waiting time, from its event log."""
        from opentelemetry.trace import Status, StatusCode, set_span_in_context

        states = [(event.time, str(event.data["state"])) for event in run.events() if event.type == "state"]
        span = self._tracer.start_span("run", self._context(parent), start_time=_nanoseconds(run.spec.created_at))
        span.set_attributes(_facts(run))
        inside = set_span_in_context(span)
        for (began, state), (ended, _) in pairwise(states):
            self._tracer.start_span(state, inside, start_time=_nanoseconds(began)).end(_nanoseconds(ended))
        if run.cause is not None:
            span.set_status(Status(StatusCode.ERROR, str(run.cause)))
        span.end(_nanoseconds(states[-1][0] if states else run.spec.created_at))

    def _context(self, parent: str | None) -> Context:
        from opentelemetry.context import Context

        return self._format.extract({_PARENT: parent} if parent else {}, Context())


def _facts(run: Run) -> dict[str, Any]:
    known: dict[str, Any] = {name: getattr(run.spec, name) for name in _SHOWN}
    known |= {"run": run.id, "status": str(run.state), "cause": run.cause and str(run.cause)}
    return {f"mleredux.{name}": value for name, value in known.items() if value is not None}


def _nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1e6) * 1000
