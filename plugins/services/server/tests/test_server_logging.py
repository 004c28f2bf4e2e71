"""The server's log: readable by people and programs, without anything confidential."""

from __future__ import annotations

import io
import json
import logging
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import structlog
from fastapi.testclient import TestClient
from hypothesis import example, given
from hypothesis import strategies as st
from mleredux._core.plugins import Catalogue
from mleredux_server.app import create_app, make_service
from mleredux_server.operations import logs
from mleredux_server.settings import Settings
from mleredux_support.server import TOKEN, ServerProcess

SECRET = "mlr_" + "a-token-that-nobody-may-read-0123456789"
HOSTILE = 'one\ntwo\r{"level": "error"}\x1b[2J\x85\u2028\u202e\x00\x7f"\\'


@pytest.fixture
def restored() -> Iterator[None]:
    """Restore logging after the test."""
    root = logging.getLogger()
    before, level, hook = list(root.handlers), root.level, threading.excepthook
    logging.getLogger("uvicorn.error").setLevel(logging.NOTSET)  # servers in this process may have set another
    yield
    root.handlers[:], threading.excepthook = before, hook
    root.setLevel(level)
    logging.captureWarnings(False)
    structlog.reset_defaults()


@pytest.fixture
def stream(restored: None) -> io.StringIO:
    """The stream of the test's log."""
    return io.StringIO()


def test_json_has_one_object_per_line_from_our_code_libraries_and_warnings(stream: io.StringIO) -> None:
    logs.configure("json", "info", stream)
    structlog.get_logger().info("run ended", run="r1", seconds=1.5, nothing=None)
    logging.getLogger("uvicorn.error").warning("Invalid %s", "request")
    warnings.warn("Something is old.", UserWarning, stacklevel=1)

    ours, theirs, warned = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert list(ours) == ["time", "level", "event", "run", "seconds"]
    assert (ours["level"], ours["event"], ours["seconds"]) == ("info", "run ended", 1.5)
    assert ours["time"].endswith("Z")
    assert (theirs["level"], theirs["event"], theirs["logger"]) == ("warning", "Invalid request", "uvicorn.error")
    assert warned["level"] == "warning"
    assert "Something is old." in warned["event"]


def test_a_level_drops_messages_below_it(stream: io.StringIO) -> None:
    logs.configure("text", "warning", stream)
    structlog.get_logger().info("left out")
    logging.getLogger("uvicorn.error").info("left out too")
    structlog.get_logger().warning("told")
    assert [line.split()[2] for line in stream.getvalue().splitlines()] == ["told"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_client_input_can_not_begin_a_line_or_move_the_cursor(form: logs.Format, stream: io.StringIO) -> None:
    logs.configure(form, "info", stream)
    structlog.get_logger().info(HOSTILE, value=HOSTILE)
    logging.getLogger("uvicorn.error").info("%s", HOSTILE)

    lines = stream.getvalue().split("\n")
    assert len(lines) == 3
    assert lines[-1] == ""
    assert all(line.isprintable() for line in lines)
    if form == "json":
        assert json.loads(lines[0])["value"] == HOSTILE


@given(st.text(st.characters(codec=None, categories=("C", "Z", "P", "L")), max_size=40))
@example(HOSTILE)
@example("a=b c")
def test_any_value_stays_on_its_line(value: str) -> None:
    event = {"time": "T", "level": "info", "event": value, "value": value}
    text = logs.as_text(None, "info", dict(event))
    assert text.isprintable()
    assert text.startswith("T info ")
    shown = logs.as_json(None, "info", dict(event))
    assert shown.isascii()
    assert json.loads(shown) == event


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_exception_comes_with_its_traceback_but_not_as_lines_of_the_log(
    form: logs.Format, stream: io.StringIO
) -> None:
    logs.configure(form, "info", stream)
    try:
        raise ValueError("bad\n2026-01-01T00:00:00.000Z info    forged")
    except ValueError as error:
        structlog.get_logger().error("failed", exc_info=error)
    lines = stream.getvalue().splitlines()
    assert "ValueError: bad" in stream.getvalue()
    if form == "json":
        [line] = lines
        assert "forged" in json.loads(line)["exception"]
    else:
        assert all(line.startswith("    | ") for line in lines[1:])


def test_a_dying_thread_is_logged(stream: io.StringIO) -> None:
    logs.configure("json", "info", stream)

    def die() -> None:
        raise RuntimeError("no more")

    thread = threading.Thread(target=die, name="dispatcher")
    thread.start()
    thread.join()
    told = json.loads(stream.getvalue())
    assert (told["level"], told["thread"]) == ("error", "dispatcher")
    assert "no more" in told["exception"]


@pytest.mark.parametrize(
    "text",
    [
        f"GET /v1/runs?token={SECRET}",
        f"Authorization: Bearer {SECRET}",
        "authorization: bearer c29tZXRoaW5nLXNlY3JldA==",
        "postgresql+psycopg://service:hunter2hunter2@db.example/mleredux",
        "https://user:hunter2hunter2@host/agent.git@main",
        "host=db user=me password=hunter2hunter2 dbname=x",
    ],
)
def test_secrets_that_slip_into_an_event_are_masked(text: str, stream: io.StringIO) -> None:
    logs.configure("json", "info", stream)
    logging.getLogger("library").warning(text)
    structlog.get_logger().info("event", detail=text, nested={"text": text})
    written = stream.getvalue()
    for secret in (SECRET, "hunter2", "c29tZXRoaW5nLXNlY3JldA"):
        assert secret not in written
    assert written.count("[masked]") >= 3


def test_the_server_logs_each_request_once_with_its_route_and_without_secrets(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "runs", "--log-format", "json") as server:
        with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http:
            http.get("/v1/runs", params={"limit": "5", "token": SECRET})
            http.get("/healthz")
            answer = http.get("/v1/runs/never%0a%7b%22level%22:1%7d")
            http.post("/v1/runs", json={"task": "body-text-that-is-nobodys-business", "agent": SECRET})
            http.get(f"/v1/runs/{SECRET}")
        user = httpx.get(f"{server.url}/v1/runs", headers={"Authorization": f"Bearer {SECRET}"}, timeout=60)
        assert user.status_code == 401
    lines = [line for line in server.log if not line.startswith("Listening on")]
    told = [json.loads(line) for line in lines]
    requests = [line for line in told if line["event"] == "request"]
    assert [(line["method"], line["route"], line["status"]) for line in requests] == [
        ("GET", "/v1/runs", 422),
        ("GET", "/v1/runs/{run_id}", 404),
        ("POST", "/v1/runs", 404),
        ("GET", "/v1/runs/{run_id}", 404),
        ("GET", "none", 401),  # without a token, the request is refused before routing
    ]
    assert [line.get("user", "").startswith("usr_") for line in requests] == [True, True, True, True, False]
    assert all(line["ms"] > 0 for line in requests)
    assert requests[1]["request_id"] == answer.headers["X-Request-Id"]
    written = "\n".join(server.log)
    for secret in (SECRET, TOKEN, "nobodys-business"):
        assert secret not in written


def test_internal_errors_are_logged_with_the_id_sent_to_the_client(stream: io.StringIO, tmp_path: Path) -> None:
    app = create_app(make_service(Settings(runs_dir=tmp_path / "runs"), Catalogue()))

    @app.get("/broken")
    def broken() -> None:
        raise ZeroDivisionError("nobody thought of that")

    logs.configure("json", "info", stream)
    with TestClient(app, raise_server_exceptions=False) as client:
        answer = client.get("/broken")
    assert answer.status_code == 500
    assert "nobody thought" not in answer.text
    assert answer.json()["instance"] == answer.headers["X-Request-Id"]
    told = [line for line in map(json.loads, stream.getvalue().splitlines()) if line.get("request_id")]
    assert {line["event"] for line in told} == {"request", "request failed"}
    assert {line["request_id"] for line in told} == {answer.headers["X-Request-Id"]}
    [failed] = [line for line in told if line["event"] == "request failed"]
    assert "ZeroDivisionError: nobody thought of that" in failed["exception"]
