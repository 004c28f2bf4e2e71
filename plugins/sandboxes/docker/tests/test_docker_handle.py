"""A handle of a container whose engine answers, fails, or stays silent."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from docker import APIClient
from mleredux_sandbox_docker import handle

STATE = {"Status": "running", "Running": True, "StartedAt": "2026-01-01T00:00:00Z", "ExitCode": 0}


@pytest.mark.parametrize("fault", ["silent", "failing", "cut"])
def test_a_handle_says_in_time_that_its_engine_does_not_respond(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    works, released = threading.Event(), threading.Event()
    works.set()

    class Engine(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not works.is_set() and fault == "silent":
                released.wait(60)
            if not works.is_set() and fault == "cut":
                return
            body = json.dumps({"State": STATE, "ApiVersion": "1.43"}).encode()
            self.send_response(200 if works.is_set() else 500)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setattr(handle, "_ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(handle, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(handle.LogFollower, "_record", lambda _self: None)  # it would read the same engine
    with ThreadingHTTPServer(("127.0.0.1", 0), Engine) as engine:
        threading.Thread(target=engine.serve_forever, daemon=True).start()
        client = APIClient(base_url=f"tcp://127.0.0.1:{engine.server_port}", version="1.43", timeout=120)
        agent = handle.DockerHandle(client, "c" * 64, tmp_path / "log", 0, tmp_path / "noted")
        assert agent.poll() is None and agent.waiting_for is None
        works.clear()
        began = time.monotonic()
        assert agent.poll() is None, "it may be alive"
        assert "the Docker engine, which does not respond" in (agent.waiting_for or "")
        assert time.monotonic() - began < 60, "not as long as an image may take to build"
        works.set()
        released.set()
        while agent.waiting_for:
            assert agent.poll() is None and time.monotonic() - began < 60
        client.close()
        engine.shutdown()
