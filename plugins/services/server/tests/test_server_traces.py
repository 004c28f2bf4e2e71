"""OpenTelemetry traces: a run's spans reach a collector, as children of the caller's."""

from __future__ import annotations

import gzip
import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mleredux.errors import MlereduxError
from mleredux_server.operations.traces import open_tracing
from mleredux_support.server import ServerProcess
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TRACE, PARENT, KEY = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "key-of-the-collector-0123456789"


class Collector(http.server.ThreadingHTTPServer):
    """It decodes what it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[Any] = []
        self.keys: set[str | None] = set()
        self.services: set[str] = set()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.keys.add(self.headers.get("api-key"))
        for one in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.server.services |= {
                item.value.string_value for item in one.resource.attributes if item.key == "service.name"
            }
            self.server.spans += [span for scope in one.scope_spans for span in scope.spans]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as there:
        threading.Thread(target=there.serve_forever, daemon=True).start()
        yield there
        there.shutdown()


def facts(span: Any) -> dict[str, Any]:
    return {item.key: item.value.string_value or item.value.int_value for item in span.attributes}


def test_a_run_is_traced_from_its_request_to_its_end(tmp_path: Path, collector: Collector) -> None:
    env = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        "OTEL_EXPORTER_OTLP_HEADERS": f"api-key={KEY}",
        "OTEL_SERVICE_NAME": "lab",
        "OTEL_BSP_SCHEDULE_DELAY": "200",
    }
    with ServerProcess(tmp_path / "runs", "--workers", "1", env=env) as server:
        headers = {"Authorization": f"Bearer {server.token}", "traceparent": f"00-{TRACE}-{PARENT}-01"}
        with httpx.Client(base_url=server.url, headers=headers, timeout=60) as client:
            made = client.post("/v1/runs", json={"task": "digits", "agent": "dummy", "sandbox": "process"})
            assert made.status_code == 201, made.text
            until = time.monotonic() + 120
            while not any(span.name == "run" for span in collector.spans) and time.monotonic() < until:
                time.sleep(0.2)
            assert client.get(f"/v1/runs/{made.json()['id']}").json()["status"] == "done"
        workers = list((server.runs_dir / made.json()["id"]).rglob("*"))
        assert not [path for path in workers if path.is_file() and KEY.encode() in path.read_bytes()]
    assert (collector.keys, collector.services) == ({KEY}, {"lab"})
    by_name = {span.name: span for span in collector.spans}
    request, run = by_name["POST /v1/runs"], by_name["run"]
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (TRACE, PARENT)
    assert (run.trace_id, run.parent_span_id) == (request.trace_id, request.span_id)
    assert facts(request)["http.response.status_code"] == 201
    told = facts(run)
    assert (told["mleredux.run"], told["mleredux.task"], told["mleredux.status"]) == (
        made.json()["id"],
        "digits",
        "done",
    )
    inside = [span for span in collector.spans if span.parent_span_id == run.span_id]
    assert {"queued", "preparing", "running", "grading"} <= {span.name for span in inside}
    assert all(run.start_time_unix_nano <= span.start_time_unix_nano for span in inside)
    assert max(span.end_time_unix_nano for span in inside) == run.end_time_unix_nano
    assert facts(by_name["schedule"])["mleredux.started"] == 1


def test_nothing_is_traced_unless_asked_for() -> None:
    there = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    assert open_tracing({}) is None
    assert open_tracing({**there, "OTEL_SDK_DISABLED": "true"}) is None
    assert open_tracing({**there, "OTEL_TRACES_EXPORTER": "none"}) is None
    with pytest.raises(MlereduxError, match="can't be sent with grpc"):
        open_tracing({**there, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
