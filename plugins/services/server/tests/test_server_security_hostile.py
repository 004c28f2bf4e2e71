"""Hostile requests, byte by byte: names, bodies, headers, forms. Nothing ends in a 500, leaks, or grows."""

from __future__ import annotations

import io
import json
import re
import socket
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import httpx
import psutil
import pytest
from mleredux_server.accounts.limits import RateLimit
from mleredux_server.operations import listener
from mleredux_server.protocol import middleware
from mleredux_support.server_local import LocalServer

pytestmark = pytest.mark.attack

SECRET = "what-nobody-may-read"
HOSTILE_NAMES = [
    'quote"semicolon;.txt',
    "line\r\nX-Evil: 1.txt",
    "tab\tand\x7f.txt",
    "..\\..\\evil.txt",
    "C:\\evil.txt",
    "-rf.txt",
    "ünï\u202etxt.exe",
    "%2e%2e%2fname.txt",
    "CON",
    "trailing dot.",
]


class Place:
    """A server with a run whose output files have hostile names, beside unrelated secrets."""

    def __init__(self, local: LocalServer) -> None:
        self.local = local
        for limit in ("of_failures", "of_user"):
            setattr(local.app.state.limits, limit, RateLimit(10**6))
        run = local.make_run()
        self.run_id, output = run.id, run.output_dir
        output.mkdir(parents=True, exist_ok=True)
        for name in HOSTILE_NAMES:
            (output / name).write_text(f"content of {name!r}", encoding="utf-8")
        (output / "submission.csv").write_text("id,class\n", encoding="utf-8")
        outside = local.service.store.path / "secret.txt"
        for path in (outside, local.service.settings.state_dir / "secret.txt", run.path / "secret.txt"):
            path.write_text(SECRET, encoding="utf-8")
        (output / "link.txt").symlink_to(outside)
        (output / "folder-link").symlink_to(outside.parent)
        (run.path / "logs").mkdir(exist_ok=True)
        (run.path / "logs" / "agent.log").write_text("said\n", encoding="utf-8")
        local.settle(run.id, "done")
        self.http = httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {local.token}"}, timeout=30)

    def raw(self, target: bytes, *, method: bytes = b"GET", headers: bytes = b"", body: bytes = b"") -> bytes:
        """Return the response to a request whose target no client has normalized."""
        host, _, port = self.local.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=30) as line:
            token = f"Authorization: Bearer {self.local.token}\r\n".encode()
            line.sendall(method + b" " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + token + headers)
            answer = b""
            try:
                line.sendall(b"\r\n" + body)
                while part := line.recv(65536):
                    answer += part
            except (ConnectionResetError, BrokenPipeError):
                pass  # the server has responded and does not read the rest
            return answer


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = Path(tmp_path_factory.mktemp("hostile")) / "runs"
    with LocalServer(folder, max_upload_mb=1, max_body_kb=64).running() as local:
        made = Place(local)
        yield made
        made.http.close()


def status(answer: bytes) -> int:
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    assert found, answer[:200]
    return int(found[1])


def encodings(name: str) -> list[bytes]:
    """Return a name that climbs, in forms that have deceived filters before."""
    plain = name.encode()
    return [
        plain,
        plain.replace(b"/", b"%2f"),
        plain.replace(b"/", b"%2F").replace(b".", b"%2e"),
        plain.replace(b"/", b"%252f").replace(b".", b"%252e"),
        plain.replace(b"/", b"\\"),
        plain.replace(b"/", b"%5c"),
        plain.replace(b"/", b"%c0%af").replace(b".", b"%c0%ae"),
        plain.replace(b"/", b"%ef%bc%8f"),
        plain.replace(b"..", b"%u002e%u002e"),
        plain.replace(b"/", b"/./"),
        plain.replace(b"/", b"//"),
        plain + b"%00.txt",
        plain + b"/",
    ]


CLIMBS = [
    "../secret.txt",
    "../../secret.txt",
    "../../.server/secret.txt",
    "x/../../secret.txt",
    "/etc/passwd",
    "../../../../../../../../etc/passwd",
    "link.txt",
    "folder-link/secret.txt",
    "folder-link/.server/secret.txt",
    "file:///etc/passwd",
]


@pytest.mark.parametrize("climb", CLIMBS)
def test_no_name_escapes_a_runs_output_or_logs(place: Place, climb: str) -> None:
    base = f"/v1/runs/{place.run_id}".encode()
    for name in encodings(climb):
        for folder in (b"/artifacts/", b"/logs/"):
            answer = place.raw(base + folder + name)
            assert SECRET.encode() not in answer, name
            assert b"root:" not in answer, name
            assert status(answer) in (307, 400, 404, 405, 422), (name, answer[:300])
        packed = place.raw(base + b"/archive?format=tar&prefix=" + name.replace(b"&", b"%26"))
        assert SECRET.encode() not in packed, name
        assert status(packed) in (200, 400, 404, 422), name


@pytest.mark.parametrize("climb", ["..", "../..", "../../.server", ".server", ".", "", "*", "%2e%2e%2f.server"])
def test_no_id_escapes_to_another_folder(place: Place, climb: str) -> None:
    for name in encodings(climb):
        for rest in (b"", b"/artifacts", b"/logs/agent.log", b"/artifacts/secret.txt", b"/events", b"/archive"):
            answer = place.raw(b"/v1/runs/" + name + rest)
            assert SECRET.encode() not in answer
            assert status(answer) in (200, 307, 400, 404, 405, 406, 422), (name, rest, answer[:300])
            if status(answer) == 200:  # `.` and `//` may be normalized to the list of runs
                assert b'"items"' in answer


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_file_with_a_hostile_name_is_fetched_and_injects_no_header(place: Place, name: str) -> None:
    from urllib.parse import quote

    answer = place.http.get(f"/v1/runs/{place.run_id}/artifacts/{quote(name, safe='')}")
    assert "x-evil" not in answer.headers
    if answer.status_code == 200:
        assert answer.text == f"content of {name!r}"
        said = answer.headers["Content-Disposition"]
        assert said.isascii() and said.isprintable()
        assert said.startswith("attachment")
    else:
        assert answer.status_code in (404, 422)


@pytest.mark.parametrize("form", ["zip", "tar", "tar.gz"])
def test_no_archive_entry_escapes_the_extraction_folder(place: Place, form: str, tmp_path: Path) -> None:
    answer = place.http.get(f"/v1/runs/{place.run_id}/archive", params={"format": form})
    assert answer.status_code == 200
    if form == "zip":
        with zipfile.ZipFile(io.BytesIO(answer.content)) as packed:
            names = packed.namelist()
            assert all(info.external_attr >> 16 & 0o170000 in (0, 0o100000) for info in packed.infolist())
            packed.extractall(tmp_path / "out")
    else:
        with tarfile.open(fileobj=io.BytesIO(answer.content)) as packed:
            names = packed.getnames()
            assert all(member.isfile() or member.isdir() for member in packed.getmembers())
            packed.extractall(tmp_path / "out", filter="data")
    assert any(name.endswith("submission.csv") for name in names)
    for name in names:
        assert not PurePosixPath(name).is_absolute()
        assert ".." not in re.split(r"[/\\]", name), name
        assert not PureWindowsPath(name).drive, name
        assert name.isprintable() or form != "zip", name
    assert SECRET.encode() not in answer.content
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


BODIES: dict[str, bytes] = {
    "cut": b'{"task": "digits", "agent": "du',
    "empty": b"",
    "list": b"[]",
    "null": b"null",
    "text": b'"digits"',
    "nan": b'{"task": "digits", "agent": "dummy", "seed": NaN}',
    "infinity": b'{"task": "digits", "agent": "dummy", "limits": {"time_limit": Infinity}}',
    "huge number": b'{"task": "digits", "agent": "dummy", "seed": ' + b"9" * 5000 + b"}",
    "huge exponent": b'{"task": "digits", "agent": "dummy", "limits": {"cpus": 1e99999}}',
    "deep": b'{"task": "digits", "agent": "dummy", "options": ' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}",
    "deep list": b"[" * 30000 + b"]" * 30000,
    "bad utf-8": b'{"task": "dig\xff\xfeits", "agent": "dummy"}',
    "surrogate": b'{"task": "digits", "agent": "dummy", "labels": {"a": "\\ud800"}}',
    "surrogate context": b'{"task": "digits", "agent": "dummy", "context": "\\udfff", "options": {"x": "\\ud800"}}',
    "line break": b'{"task": "digits\\r\\nX-Evil: 1", "agent": "dummy"}',
    "unknown": b'{"task": "digits", "agent": "dummy", "admin": true, "__class__": "x"}',
    "many labels": json.dumps(
        {"task": "digits", "agent": "dummy", "labels": {str(n): "x" for n in range(2000)}}
    ).encode(),
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("path", ["/v1/runs", "/v1/experiments", "/v1/builds", "/v1/tokens", "/v1/users"])
def test_a_malformed_body_is_refused(place: Place, path: str, body: str) -> None:
    answer = place.http.post(path, content=BODIES[body], headers={"Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert "x-evil" not in answer.headers
    assert len(answer.content) < 20_000, "the request is not echoed"


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/xml", "application/json; charset=utf-7", "", "x" * 900]
)
def test_a_body_of_another_content_type_is_refused(place: Place, content_type: str) -> None:
    body = b'{"task": "nothing", "agent": "dummy"}'
    answer = place.http.post("/v1/runs", content=body, headers={"Content-Type": content_type})
    assert 400 <= answer.status_code < 500


def test_a_body_that_is_too_large_is_refused_before_it_is_read(place: Place) -> None:
    said = place.raw(
        b"/v1/runs", method=b"POST", headers=b"Content-Length: 99999999999\r\nContent-Type: application/json\r\n"
    )
    assert status(said) == 413
    for length in (b"-1", b"abc", b"1, 2", b"9" * 400, b"0x10"):
        assert status(place.raw(b"/v1/runs", method=b"POST", headers=b"Content-Length: " + length + b"\r\n")) in (
            400,
            413,
        )


def test_a_body_without_end_is_cut_off(place: Place) -> None:
    """In chunks, so that no length is declared."""
    process = psutil.Process()
    before = process.memory_info().rss
    for path in ("/v1/runs", "/v1/submissions"):

        def endless() -> Iterator[bytes]:
            for _ in range(1000):
                yield b" " * 65536

        try:
            answer = place.http.post(path, content=endless(), headers={"Content-Type": "application/json"})
        except (httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):
            continue  # the server closed the connection while it was still sending
        assert answer.status_code in (413, 415, 422), answer.text
    assert process.memory_info().rss - before < 60 << 20


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/experiments", "/v1/submissions", "/v1/tokens"])
@pytest.mark.parametrize("declared", [True, False])
def test_a_body_that_does_not_end_is_not_waited_for(
    place: Place, monkeypatch: pytest.MonkeyPatch, path: str, declared: bool
) -> None:
    monkeypatch.setattr(middleware, "BODY_SECONDS", 1.0)
    head = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    head += [f"Authorization: {place.http.headers['Authorization']}"]
    head += ["Content-Length: 1000" if declared else "Transfer-Encoding: chunked"]
    url = place.http.base_url
    with socket.create_connection((url.host, url.port), 20) as client:
        client.sendall("\r\n".join([*head, "", ""]).encode() + (b"{" if declared else b"1\r\n{\r\n"))
        data = b""
        while block := client.recv(4096):
            data += block
    assert data.split(b" ", 2)[1] in (b"408", b"415", b"422"), data[:200]


@pytest.mark.attack
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/runs"),
        ("DELETE", "/v1/runs/x"),
        ("POST", "/v1/nothing"),
        ("POST", "/ui/login"),
        ("GET", "/healthz"),
    ],
)
def test_a_body_that_nobody_reads_keeps_no_connection_open(
    place: Place, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    monkeypatch.setattr(listener, "HEADER_SECONDS", 1.0)
    token = place.http.headers["Authorization"]
    url = place.http.base_url
    with socket.create_connection((url.host, url.port), 20) as client:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\nContent-Length: 1000\r\n\r\n"
        client.sendall(head.encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 ")
        with pytest.raises(OSError):  # a reset, or a broken pipe
            for _ in range(200):
                client.sendall(b" ")
                time.sleep(0.1)


HEADERS: dict[str, bytes] = {
    "folded": b"X-A: b\r\n continued\r\n",
    "no colon": b"nothing\r\n",
    "bare line feed": b"X-A: b\nX-B: c\r\n",
    "nul": b"X-A: a\0b\r\n",
    "space in the name": b"X A: b\r\n",
    "two lengths": b"Content-Length: 0\r\nContent-Length: 5\r\n",
    "length and chunks": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "odd chunks": b"Transfer-Encoding: chunked, identity\r\n",
    "many": b"".join(b"X-%d: x\r\n" % number for number in range(3000)),
    "long": b"X-A: " + b"a" * 200_000 + b"\r\n",
    "request id": b"X-Request-Id: a\x01b<script>\r\n",
    "long request id": b"X-Request-Id: " + b"a" * 5000 + b"\r\n",
    "range": b"Range: bytes=0-,1-,2-," + b"3-," * 3000 + b"\r\n",
    "last event": b"Last-Event-ID: 99999999999999999999999\r\nAccept: text/event-stream\r\n",
    "minus event": b"Last-Event-ID: -1; DROP\r\nAccept: text/event-stream\r\n",
    "if none match": b'If-None-Match: "' + b'a", "' * 5000 + b'"\r\n',
    "if modified": b"If-Modified-Since: 99 Foo 99999999999\r\nIf-Range: \xff\r\n",
    "forwarded": b"X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host: evil.example\r\nForwarded: for=evil\r\n",
    "latin": b"X-A: \xff\xfe\xe9\r\n",
}


@pytest.mark.parametrize("headers", HEADERS)
def test_a_hostile_header_breaks_nothing(place: Place, headers: str) -> None:
    for rest in ("", "/events", "/artifacts/submission.csv", "/logs/agent.log"):
        answer = place.raw(f"/v1/runs/{place.run_id}{rest}".encode(), headers=HEADERS[headers])
        if answer:
            assert status(answer) in (200, 206, 304, 400, 404, 406, 409, 413, 416, 422, 431), answer[:400]
            head = answer.partition(b"\r\n\r\n")[0]
            assert b"<script>" not in head
            assert b"evil.example" not in head
    assert place.http.get("/healthz").status_code == 200


@pytest.mark.parametrize("key", [b"a\x80b", b"a" * 256, b"", b"a\tb"])
def test_a_malformed_idempotency_key_is_refused(place: Place, key: bytes) -> None:
    body = b'{"task": "digits", "agent": "dummy", "sandbox": "process"}'
    more = b"Idempotency-Key: " + key + b"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
    assert status(place.raw(b"/v1/runs", method=b"POST", headers=more, body=body)) == 422


HOSTILE_TEXTS = [
    "a\r\nX-Evil: 1",
    "a\nb",
    "\x1b[2J",
    "\u202e",
    "a\0b",
    "<script>alert(1)</script>",
    "${jndi:ldap://x}",
    "'; DROP TABLE runs; --",
    "../..",
    " ",
]


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_hostile_texts_are_stored_unchanged_or_refused(place: Place, text: str) -> None:
    run: dict[str, Any] = {"task": "digits", "agent": "dummy", "sandbox": "process"}
    made: list[httpx.Response] = [
        place.http.post("/v1/runs", json={**run, "labels": {text: text}}),
        place.http.post("/v1/runs", json={**run, "context": text, "options": {text: text}}),
        place.http.post("/v1/runs", json={**run, "task": text}),
        place.http.post("/v1/runs", json={**run, "project": text}),
        place.http.post("/v1/tokens", json={"name": text, "scopes": ["read"]}),
        place.http.post("/v1/users", json={"name": text}),
        place.http.post("/v1/projects", json={"name": text}),
        place.http.post("/v1/builds", json={"agent": text}),
        place.http.get("/v1/runs", params={"label": f"{text}:{text}", "task": text}),
        place.http.get("/v1/tasks", params={"q": text, "set": text}),
    ]
    for answer in made:
        assert answer.status_code < 500, answer.text
        assert "x-evil" not in answer.headers
        assert answer.headers["content-type"] in ("application/json", "application/problem+json")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert place.http.get("/v1/runs").status_code == 200
