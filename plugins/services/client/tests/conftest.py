"""A service that speaks the real protocol over a real socket, and breaks where it is told to."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from mleredux_client import Client, Run
from mleredux_support.commands import Asked

TOKEN = "mlr_planted-9f21c0aa77"
TIME = "2026-11-21T12:00:00Z"


@dataclass
class Answer:
    """What to say.

    Attributes:
        cut: Bytes of the body after which the connection breaks; 0: before the status line.
        chunked: Whether the body has no announced length.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    chunked: bool = False


def said(document: Any, status: int = 200, **headers: str) -> Answer:
    """JSON."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, json.dumps(document).encode(), {"Content-Type": "application/json", **named})


def problem(status: int, slug: str = "problem", detail: str = "It is so.", **headers: str) -> Answer:
    """Problem details."""
    told = {"type": f"urn:mleredux:problem:{slug}", "title": "No", "status": status, "detail": detail}
    answer = said({**told, "hint": "Do else.", "instance": "req-1"}, status, **headers)
    answer.headers["Content-Type"] = "application/problem+json"
    return answer


def run_document(id: str = "run-1", status: str = "done", **more: Any) -> dict[str, Any]:
    """A run as a service tells it."""
    return {"id": id, "task": "digits", "agent": "baseline", "seed": 0, "status": status, "created_at": TIME, **more}


BREAK = Answer(cut=0)
"""The connection breaks without a word."""
Route = Callable[[Asked], Answer]


class Fake:
    """The service.

    Attributes:
        asked: All requests so far.
        routes: By `METHOD /path`; a path that ends with `*` stands for all that begin so.
        faults: Answers that come before the routes' own, each once, by the same names.
    """

    token = TOKEN
    broken = BREAK
    said = staticmethod(said)
    problem = staticmethod(problem)
    answer = Answer
    run_document = staticmethod(run_document)

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.routes: dict[str, Route] = {}
        self.faults: dict[str, list[Answer]] = {}
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments: object) -> None:
                """Say nothing."""

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except ConnectionError:
                    self.close_connection = True

            def _answer(self) -> None:
                parts = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.headers.get("Transfer-Encoding") == "chunked":
                    while size := int(self.rfile.readline(), 16):
                        body += self.rfile.read(size + 2)[:-2]
                    self.rfile.readline()
                asked = Asked(
                    self.command, unquote(parts.path), parse_qs(parts.query), dict(self.headers.items()), body
                )
                self._say(fake.answer_to(asked), asked)

            def _say(self, answer: Answer, asked: Asked) -> None:
                if answer.cut == 0:
                    return self._hang_up()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                body = answer.body[: answer.cut] if answer.cut is not None else answer.body
                if answer.chunked:
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for start in range(0, len(body), 7):  # pieces that end in the middle of everything
                        piece = body[start : start + 7]
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    if answer.cut is None:
                        self.wfile.write(b"0\r\n\r\n")
                else:
                    self.send_header("Content-Length", str(len(answer.body)))
                    self.end_headers()
                    self.wfile.write(b"" if asked.method == "HEAD" else body)
                return None if answer.cut is None else self._hang_up()

            def _hang_up(self) -> None:
                self.wfile.flush()
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

            do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = do_HEAD = _answer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def answer_to(self, asked: Asked) -> Answer:
        """The next fault, or what the route says."""
        self.asked.append(asked)
        name = f"{asked.method} {asked.path}"
        waiting = self.faults.get(name)
        if waiting:
            return waiting.pop(0)
        route = self.routes.get(name) or next(
            (self.routes[known] for known in self.routes if known.endswith("*") and name.startswith(known[:-1])), None
        )
        return route(asked) if route else problem(404, "not-found", "There is no such thing.")

    def serve(self, name: str, document: Any, status: int = 200, **headers: str) -> None:
        """Always say the same."""
        self.routes[name] = lambda _asked: said(document, status, **headers)

    def fail(self, name: str, *answers: Answer) -> None:
        """Say this first, once each."""
        self.faults.setdefault(name, []).extend(answers)

    def serve_file(self, path: str, content: bytes, *, cut: int | None = None, tag: bool = True) -> None:
        """A file with ranges, of which an answer carries `cut` bytes at most before its connection breaks."""
        etag = f'"{hashlib.sha256(content).hexdigest()}"'

        def route(asked: Asked) -> Answer:
            headers = {"ETag": etag} if tag else {}
            begin = int(asked.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
            if "Range" in asked.headers and asked.headers.get("If-Range", etag) == etag:
                if begin >= len(content):
                    return problem(416, "range", Content_Range=f"bytes */{len(content)}")
                headers["Content-Range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
                rest, status = content[begin:], 206
            else:
                rest, status = content, 200
            return Answer(status, rest, headers, cut=cut if cut is not None and cut < len(rest) else None)

        self.routes[f"GET {path}"] = route

    def serve_stream(self, path: str, messages: list[tuple[int, str, Any]], cuts: list[int | None]) -> None:
        """A live stream `(id, event, data)` that breaks after so many bytes, another each time; None: it ends."""
        waiting = list(cuts)

        def route(asked: Asked) -> Answer:
            after = int(asked.headers.get("Last-Event-ID", -1))
            text = ": good day\n\n" + "".join(
                f"id: {number}\nevent: {event}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
                for number, event, data in messages
                if number > after
            )
            body = f'{text}event: end\ndata: {{"status": "done"}}\n\n'.encode()
            cut = waiting.pop(0) if waiting else None
            headers = {"Content-Type": "text/event-stream"}
            return Answer(200, body, headers, cut=cut if cut is None or cut < len(body) else None, chunked=True)

        self.routes[f"GET {path}"] = route

    def times(self, name: str) -> int:
        """How often that was asked."""
        return sum(f"{asked.method} {asked.path}" == name for asked in self.asked)

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def fake() -> Iterator[Fake]:
    service = Fake()
    yield service
    service.close()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses before further tries are not made but kept here: their upper bounds, or what the service asked for."""
    kept: list[float] = []

    async def wait(seconds: float) -> None:
        kept.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr("mleredux_client.retries.random.uniform", lambda low, high: high)
    for module in ("http", "streams", "artifacts", "polling", "runs"):
        monkeypatch.setattr(f"mleredux_client._sync.{module}.sleep", kept.append)
        monkeypatch.setattr(f"mleredux_client._async.{module}.async_sleep", wait)
    return kept


@pytest.fixture
def client(fake: Fake, pauses: list[float]) -> Iterator[Client]:
    with Client(fake.url, TOKEN, timeout=60) as opened:
        yield opened


@pytest.fixture
def run_of(fake: Fake, client: Client) -> Callable[..., Run]:
    """`run_of(status="running")`: a run as the service tells it."""

    def make(id: str = "run-1", **more: Any) -> Run:
        fake.serve(f"GET /v1/runs/{id}", run_document(id, **more))
        return client.get_run(id)

    return make
