"""Limits: rate, size, nesting, characters; and the headers of every response."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import structlog
from mleredux_server.accounts.limits import Limits, RateLimit
from mleredux_server.schemas.body import DEEPEST
from mleredux_support.server_local import LocalServer

RUN = {"task": "digits", "agent": "dummy", "sandbox": "docker"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    place = Path(tmp_path_factory.mktemp("local")) / "runs"
    with LocalServer(place, max_body_kb=64, requests_per_minute=600).running() as started:
        yield started


@pytest.fixture(scope="module")
def http(local: LocalServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {local.token}"}, timeout=30) as client:
        yield client


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def test_a_burst_is_allowed_and_then_a_steady_rate() -> None:
    clock = Clock()
    limit = RateLimit(6, 60.0, clock)
    assert [limit.hit("a").remaining for _ in range(6)] == [5, 4, 3, 2, 1, 0]
    refused = limit.hit("a")
    assert (refused.wait, refused.remaining, refused.reset) == (10.0, 0, 60.0)
    assert limit.hit("b").wait == 0.0  # others are not touched
    clock.time += 9.9
    assert limit.hit("a").wait == pytest.approx(0.1)
    clock.time += 0.2
    assert limit.hit("a").wait == 0.0
    clock.time += 3600
    assert [limit.hit("a").wait > 0 for _ in range(7)] == [False] * 6 + [True]


def test_refused_requests_and_queries_are_not_counted() -> None:
    clock = Clock()
    limit = RateLimit(2, 60.0, clock)
    for _ in range(2):
        limit.hit("a")
    for _ in range(100):
        assert limit.hit("a").wait == limit.hit("a", count=False).wait == 30.0


def test_memory_is_bounded_however_many_addresses_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mleredux_server.accounts.limits._MOST_KEYS", 100)
    limit = RateLimit(2, 60.0)
    for _ in range(3):
        limit.hit("busy")
    for number in range(1000):
        limit.hit(f"{number}")
        limit.hit("busy")
    assert len(limit._empty_at) <= 100
    assert limit.hit("busy").wait > 0


def test_responses_have_rate_limit_headers_and_retry_after(local: LocalServer, http: httpx.Client) -> None:
    token, other = local.user("rita"), local.other_token("rita")
    limits, local.app.state.limits = local.app.state.limits, Limits(5)
    try:
        with httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as rita:
            stands = [rita.get("/v1/agents").headers for _ in range(5)]
            assert [headers["RateLimit-Remaining"] for headers in stands] == ["4", "3", "2", "1", "0"]
            assert {headers["RateLimit-Limit"] for headers in stands} == {"5"}
            refused = rita.get("/v1/agents")
            assert rita.get("/v1/agents", headers={"Authorization": f"Bearer {other}"}).status_code == 429
        assert (refused.status_code, refused.json()["type"]) == (429, "urn:mleredux:problem:too-many-requests")
        assert 1 <= int(refused.headers["Retry-After"]) <= 12
        assert refused.headers["RateLimit-Remaining"] == "0"
        assert http.get("/v1/agents").status_code == 200  # another user
        assert "RateLimit-Limit" not in httpx.get(f"{local.url}/healthz", timeout=60).headers
    finally:
        local.app.state.limits = limits


def test_the_valid_tokens_of_a_user_are_limited(local: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mleredux_server.accounts.accounts.MOST_TOKENS", 3)
    token = local.user("tess", scopes=["tokens"])
    with httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as tess:
        asked = {"name": "more", "scopes": ["tokens"]}
        made = [tess.post("/v1/tokens", json=asked) for _ in range(3)]
        assert [answer.status_code for answer in made] == [201, 201, 409]
        assert made[2].json()["detail"] == "User tess has 3 valid tokens."
        assert tess.delete(f"/v1/tokens/{made[0].json()['id']}").status_code == 204
        assert tess.post("/v1/tokens", json=asked).status_code == 201


def test_tokens_can_not_be_guessed_but_known_ones_still_work(local: LocalServer, http: httpx.Client) -> None:
    limits, local.app.state.limits = local.app.state.limits, Limits(10_000, 5)
    fresh = local.user("sven")
    assert http.get("/v1/me").status_code == 200
    try:
        with httpx.Client(base_url=local.url, timeout=60) as guesser:
            for number in range(5):
                wrong = guesser.get("/v1/me", headers={"Authorization": f"Bearer mlr_guess-{number:040d}"})
                assert wrong.status_code == 401
            for token in ("mlr_another-guess-0000000000000000", fresh, ""):  # a right guess tells nothing either
                refused = guesser.get("/v1/me", headers={"Authorization": f"Bearer {token}"} if token else {})
                assert (refused.status_code, refused.json()["type"]) == (429, "urn:mleredux:problem:too-many-requests")
        local.app.state.tokens._known.clear()
        assert http.get("/v1/me").status_code == 200
    finally:
        local.app.state.limits = limits
    assert httpx.get(f"{local.url}/v1/me", headers={"Authorization": f"Bearer {fresh}"}, timeout=60).status_code == 200


def test_half_sent_headers_do_not_hold_a_connection(local: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mleredux_server.operations.listener.HEADER_SECONDS", 0.2)
    address = (httpx.URL(local.url).host, httpx.URL(local.url).port or 0)
    for sent in (b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Sl"):
        with (
            socket.create_connection(address, timeout=60) as slow,
            contextlib.suppress(ConnectionError),  # it was closed before all was sent
        ):
            slow.sendall(sent)
            assert slow.recv(1) == b""


def test_connections_beyond_the_limit_are_closed(local: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mleredux_server.operations.listener._MOST_CONNECTIONS", 0)
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{local.url}/healthz", timeout=60)
    monkeypatch.undo()
    assert httpx.get(f"{local.url}/healthz", timeout=60).status_code == 200


def test_a_body_declared_too_large_is_not_read(http: httpx.Client) -> None:
    answered = http.post("/v1/runs", json={**RUN, "context": "x" * 70_000})
    assert (answered.status_code, answered.json()["type"]) == (413, "urn:mleredux:problem:too-large")
    assert answered.headers["Connection"] == "close"


def test_a_body_without_a_length_is_limited_while_it_arrives(local: LocalServer) -> None:
    address = httpx.URL(local.url)
    with socket.create_connection((address.host, address.port or 0), timeout=10) as raw:
        raw.sendall(
            f"POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {local.token}\r\n".encode()
            + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        sent = 0
        try:
            while sent < 64 << 20:
                raw.sendall(b"2000\r\n" + b"[" * 0x2000 + b"\r\n")
                sent += 0x2000
        except OSError:
            pass  # the server has hung up
        assert sent < 8 << 20
        answered = raw.recv(65536) if sent else b""
    assert answered.startswith(b"HTTP/1.1 413 ") or not answered


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "[]",
        "null",
        '"text"',
        "[" * 30_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        json.dumps({**RUN, "options": {}}).replace("{}", '{"a":' * 900 + "1" + "}" * 900),
        json.dumps({**RUN, "options": {}}).replace("{}", "{" + '"a":{' * DEEPEST + "}" * DEEPEST + "}"),
        json.dumps({**RUN, "options": {}}).replace("{}", '{"a": NaN}'),
        json.dumps({**RUN, "options": {}}).replace("{}", '{"a": 1e999}'),
        json.dumps({**RUN, "seed": 7}).replace("7", "7" * 5_000),
        '{"task": "digits", "agent": "dummy", "context": "a\\u0000b"}',
        '{"task": "digits", "agent": "dummy", "context": "\\ud800"}',
        '{"task": "digits", "agent": "dummy", "options": {"\\udfff": 1}}',
        '{"task": "digits", "agent": "dummy", "options": {"a": ["\\u0000"]}}',
        '{"task": "digits", "agent": "dummy", "labels": {"\\ud800": "v"}}',
        '{"task": "digits", "agent": "dummy", "labels": {"k": "\\u0000"}}',
        '{"task": "\\ud800", "agent": "dummy"}',
        '{"\\ud800": 1}',
        '{"task": "digits", "agent": "dummy", "limits": {"\\ud800": 1}}',
        "\ufeff{}",
        b"\xff\xfe{}",
        b'{"task": "\xff", "agent": "dummy"}',
    ],
    ids=str,
)
def test_a_hostile_body_is_refused_with_a_message(http: httpx.Client, body: str | bytes) -> None:
    content = body if isinstance(body, bytes) else body.encode()
    answered = http.post("/v1/runs", content=content, headers=JSON)
    assert (answered.status_code, answered.json()["type"]) == (422, "urn:mleredux:problem:invalid"), answered.text
    assert answered.json()["detail"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/runs?task=a%00b",
        "/v1/runs/a%00b",
        "/v1/runs?cursor=%00",
        "/v1/runs?label=a:%00",
        "/v1/tasks?q=%00",
        "/v1/projects/%00",
        "/v1/runs?a%00=1",
    ],
)
def test_a_nul_in_the_address_is_refused(http: httpx.Client, path: str) -> None:
    answered = http.get(path)
    assert (answered.status_code, answered.json()["type"]) == (422, "urn:mleredux:problem:invalid")


@pytest.mark.parametrize(
    "path", ["/v1/runs?task=%ff%fe", "/v1/runs/%ed%a0%80", "/v1/projects/%F0%9F%92%A9", "/v1/users/'--"]
)
def test_odd_characters_in_the_address_find_nothing(http: httpx.Client, path: str) -> None:
    answered = http.get(path)
    assert answered.status_code == (200 if "?" in path else 404)


def test_too_many_headers_are_refused(http: httpx.Client) -> None:
    answered = http.get("/v1/me", headers={f"X-{number}": "1" for number in range(101)})
    assert (answered.status_code, answered.json()["type"]) == (413, "urn:mleredux:problem:too-large")
    assert http.get("/v1/me", headers={"X-Long": "x" * 40_000}).status_code == 413


def test_each_response_has_an_id_and_a_valid_one_of_the_client_is_used(http: httpx.Client) -> None:
    given = http.get("/v1/me", headers={"X-Request-Id": "trace-0123456789.abc"})
    assert given.headers["X-Request-Id"] == "trace-0123456789.abc"
    for odd in (
        "short",
        "x" * 65,
        "with space 0123456",
        "new\tline-0123456",
        "<script>alert(1)",
        "é-0123456789".encode(),
    ):
        answered = http.get("/v1/nothing", headers={"X-Request-Id": odd})
        assert answered.headers["X-Request-Id"].startswith("req_")
        assert answered.json()["instance"] == answered.headers["X-Request-Id"]


def test_responses_prevent_content_sniffing(http: httpx.Client) -> None:
    for path in ("/v1/me", "/v1/nothing", "/healthz", "/v1/runs?sort=x"):
        headers = http.get(path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
    policy = http.get("/docs").headers["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self' 'sha256-" in policy and "connect-src 'self'" in policy


def test_an_internal_error_is_a_message_without_details(
    local: LocalServer, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object, **_more: object) -> None:
        raise KeyError("secret insides")

    monkeypatch.setattr("mleredux_server.api.agents.list_records", broken)
    with structlog.testing.capture_logs() as told:
        answered = http.get("/v1/agents")
    assert (answered.status_code, answered.json()["type"]) == (500, "urn:mleredux:problem:internal")
    assert [str(line["exc_info"]) for line in told if line["event"] == "request failed"] == ["'secret insides'"]
    assert "insides" not in answered.text
    assert answered.json()["instance"] == answered.headers["X-Request-Id"]
    assert answered.headers["X-Content-Type-Options"] == "nosniff"
